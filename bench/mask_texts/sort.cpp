#include <algorithm>
#include <string>
#include <vector>

namespace sample {

struct Person {
  std::string name;
  int age = 0;
};

std::vector<Person> adults(std::vector<Person> people, int limit) {
  std::erase_if(people, [limit](const Person& p) { return p.age < limit; });
  std::sort(people.begin(), people.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return people;
}

}  // namespace sample
