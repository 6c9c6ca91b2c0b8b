#include <stdexcept>
#include <vector>

template <typename T>
class Queue {
 public:
  void push(const T& value) { items_.push_back(value); }

  T pop() {
    if (begin_ == items_.size()) throw std::out_of_range("The queue is empty.");
    return items_[begin_++];
  }

  bool empty() const { return begin_ == items_.size(); }

 private:
  std::vector<T> items_;
  std::size_t begin_ = 0;
};
