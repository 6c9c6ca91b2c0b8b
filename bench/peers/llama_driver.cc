// A program around llama.cpp's library, so that it can be timed phase by phase with our prompts: `scripts/peers.py`.
//
//   llama-driver quantize FROM.gguf TO.gguf      the same weights at Q8_0
//   llama-driver serve MODEL.gguf N_CONTEXT      the line protocol of `treefill.benchmarks.driver`, threads 1 at first
//
// It uses the library as llama-bench does: flash attention as the library thinks best, weights repacked, and one pool
// of threads that lasts, since a context without one makes and joins its threads for every single step.

#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <llama.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr int kBatch = 2048;  // tokens given to one call; the library cuts them into pieces of its own liking

[[noreturn]] void fail(const std::string& sentence) {
  std::cout << "error " << sentence << std::endl;
  std::exit(1);
}

double now_ms() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(since).count();
}

// The model, its context and its threads; one sequence.
class Peer {
 public:
  Peer(const char* path, int n_context) {
    llama_model_params model_params = llama_model_default_params();
    model_params.n_gpu_layers = 0;
    model_ = llama_model_load_from_file(path, model_params);
    if (model_ == nullptr) fail(std::string("llama.cpp cannot load ") + path);
    llama_context_params params = llama_context_default_params();
    params.n_ctx = n_context;
    params.n_batch = kBatch;
    params.no_perf = true;
    context_ = llama_init_from_model(model_, params);
    if (context_ == nullptr) fail("llama.cpp cannot make a context of so many tokens");
    n_vocabulary_ = llama_vocab_n_tokens(llama_model_get_vocab(model_));
    set_threads(1);
  }

  void set_threads(int n) {
    ggml_backend_reg_t cpu = ggml_backend_reg_by_name("CPU");
    const auto make =
        reinterpret_cast<decltype(&ggml_threadpool_new)>(ggml_backend_reg_get_proc_address(cpu, "ggml_threadpool_new"));
    const auto free = reinterpret_cast<decltype(&ggml_threadpool_free)>(
        ggml_backend_reg_get_proc_address(cpu, "ggml_threadpool_free"));
    if (make == nullptr || free == nullptr) fail("this llama.cpp has no pool of threads");
    if (pool_ != nullptr) {
      llama_detach_threadpool(context_);
      free(pool_);
    }
    ggml_threadpool_params params = ggml_threadpool_params_default(n);
    pool_ = make(&params);
    if (pool_ == nullptr) fail("llama.cpp cannot start so many threads");
    llama_attach_threadpool(context_, pool_, nullptr);
    llama_set_n_threads(context_, n, n);
  }

  void forget() {
    llama_memory_clear(llama_get_memory(context_), false);
    cached_.clear();
  }

  // Evaluates what of `ids` is not cached, the last one always; the likeliest token after them.
  llama_token prefill(const std::vector<llama_token>& ids) {
    const auto [kept, unused] = std::mismatch(cached_.begin(), cached_.end(), ids.begin(), ids.end());
    const std::size_t n_kept = std::min<std::size_t>(kept - cached_.begin(), ids.size() - 1);
    cached_.resize(n_kept);
    llama_memory_seq_rm(llama_get_memory(context_), 0, static_cast<llama_pos>(n_kept), -1);
    for (std::size_t start = n_kept; start < ids.size(); start += kBatch) {
      const std::size_t stop = std::min(ids.size(), start + kBatch);
      evaluate({ids.begin() + start, ids.begin() + stop});
    }
    return last_ = likeliest();
  }

  // Goes on greedily from where `prefill` or the last `decode` ended: the tokens after that one.
  std::vector<llama_token> decode(int n_tokens) {
    std::vector<llama_token> written;
    for (int i = 0; i < n_tokens; ++i) {
      evaluate({last_});
      written.push_back(last_ = likeliest());
    }
    return written;
  }

 private:
  void evaluate(std::vector<llama_token> ids) {
    const llama_batch batch = llama_batch_get_one(ids.data(), static_cast<int32_t>(ids.size()));
    if (llama_decode(context_, batch) != 0) fail("llama.cpp cannot evaluate so many tokens");
    cached_.insert(cached_.end(), ids.begin(), ids.end());
  }

  llama_token likeliest() const {
    const float* logits = llama_get_logits_ith(context_, -1);
    return static_cast<llama_token>(std::max_element(logits, logits + n_vocabulary_) - logits);
  }

  llama_model* model_ = nullptr;
  llama_context* context_ = nullptr;
  ggml_threadpool* pool_ = nullptr;
  int n_vocabulary_ = 0;
  llama_token last_ = 0;
  std::vector<llama_token> cached_;
};

// Which build of the CPU's part the library has chosen for this machine, and what that uses.
std::string features() {
  std::string text = llama_print_system_info();
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

void answer(Peer& peer, const std::string& line) {
  std::istringstream words(line);
  std::string verb;
  words >> verb;
  std::vector<llama_token> numbers;
  for (llama_token number; words >> number;) numbers.push_back(number);
  const double started = now_ms();
  std::vector<llama_token> ids;
  if (verb == "threads" && numbers.size() == 1) {
    peer.set_threads(numbers[0]);
  } else if (verb == "prefill" && !numbers.empty()) {
    ids.push_back(peer.prefill(numbers));
  } else if (verb == "decode" && numbers.size() == 1) {
    ids = peer.decode(numbers[0]);
  } else if (verb == "forget") {
    peer.forget();
  } else {
    fail("the line '" + verb + "' is not understood");
  }
  std::cout << "ok " << now_ms() - started;
  for (const llama_token id : ids) std::cout << ' ' << id;
  std::cout << std::endl;
}

int quantize(const char* from, const char* to) {
  llama_model_quantize_params params = llama_model_quantize_default_params();
  params.ftype = LLAMA_FTYPE_MOSTLY_Q8_0;
  params.allow_requantize = true;
  return llama_model_quantize(from, to, &params) == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string mode = count == 4 ? arguments[1] : "";
  if (mode != "quantize" && mode != "serve") {
    std::cerr << "usage: llama-driver quantize FROM.gguf TO.gguf | serve MODEL.gguf N_CONTEXT\n";
    return 2;
  }
  const auto quiet = [](ggml_log_level level, const char* text, void*) {
    if (level == GGML_LOG_LEVEL_ERROR) std::fputs(text, stderr);
  };
  llama_log_set(quiet, nullptr);
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  ggml_backend_load_all_from_path((folder / "lib").c_str());
  llama_backend_init();
  if (mode == "quantize") return quantize(arguments[2], arguments[3]);
  Peer peer(arguments[2], std::atoi(arguments[3]));
  std::cout << "ready " << features() << std::endl;
  for (std::string line; std::getline(std::cin, line);) answer(peer, line);
  return 0;
}
