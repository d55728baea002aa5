#include "lm/serve/engine/model_embedder.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <span>

namespace caldera::serve {
namespace {

constexpr std::size_t kMostTexts = 32;     // of a batch
constexpr std::size_t kMostTokens = 8192;  // of a batch of several texts, padding among them
constexpr auto kPatience = std::chrono::milliseconds(100);

/// How many of the texts, which are in order of their length, the first ones of `order` make a batch of.
std::size_t batch_size(const std::vector<Embedder::Tokens>& texts, std::span<const std::size_t> order) {
  std::size_t count = 1;
  while (count < std::min(order.size(), kMostTexts) &&
         (count + 1) * texts[order[count]].size() <= kMostTokens)
    ++count;
  return count;
}

}  // namespace

/// A place in the queue for the model.
class ModelEmbedder::Turn {
 public:
  explicit Turn(ModelEmbedder& owner) : owner_(owner) {
    const std::lock_guard lock(owner_.mutex_);
    owner_.waiting_.push_back(this);
  }
  ~Turn() {
    const std::lock_guard lock(owner_.mutex_);
    std::erase(owner_.waiting_, this);
    owner_.next_.notify_all();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  /// Waits for the model. False once `go_on` says no.
  bool wait(const std::function<bool()>& go_on) {
    while (true) {
      {
        std::unique_lock lock(owner_.mutex_);
        if (owner_.next_.wait_for(lock, kPatience, [&] { return owner_.waiting_.front() == this; }))
          return true;
      }
      if (!go_on()) return false;
    }
  }

 private:
  ModelEmbedder& owner_;
};

ModelEmbedder::ModelEmbedder(EmbeddingModel model, std::string name, const Options& options)
    : model_(std::move(model)),
      name_(std::move(name)),
      options_(options),
      vocabulary_(model_.model().config().vocab_size) {
  model_.model().set_training(false);
}

Embedder::Widths ModelEmbedder::widths() const {
  const SentenceModules& modules = model_.modules();
  if (!modules.matryoshka_dimensions.empty()) return {false, modules.matryoshka_dimensions};
  return {options_.matryoshka || modules.matryoshka, {}};
}

std::vector<std::vector<float>> ModelEmbedder::embed(const std::vector<Tokens>& texts,
                                                     const std::function<bool()>& go_on) {
  // Texts of about one length stand together: the shorter ones are padded to the longest of their batch.
  std::vector<std::size_t> order(texts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return texts[i].size(); });
  EncodeOptions options;
  options.pooling = options_.pooling;
  options.normalize = true;
  const auto width = static_cast<std::size_t>(dimension());
  std::vector<std::vector<float>> vectors(texts.size());
  for (std::size_t begin = 0; begin < order.size();) {
    const auto part = std::span(order).subspan(begin);
    const std::size_t count = batch_size(texts, part);
    std::vector<Tokens> batch;
    for (const std::size_t i : part.first(count)) batch.push_back(texts[i]);
    if (!go_on()) return {};
    Turn turn(*this);
    if (!turn.wait(go_on)) return {};
    const std::vector<float> values = model_.embed(batch, options).to_vector<float>();
    for (std::size_t i = 0; i < count; ++i) {
      const auto first = values.begin() + static_cast<std::ptrdiff_t>(i * width);
      vectors[part[i]].assign(first, first + static_cast<std::ptrdiff_t>(width));
    }
    begin += count;
  }
  return vectors;
}

}  // namespace caldera::serve
