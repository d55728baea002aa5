// ModelEmbedder: an EmbeddingModel behind the server.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>

#include "lm/embed/embedding_model.h"
#include "lm/serve/engine/embedder.h"

namespace caldera::serve {

/// Requests take turns, a batch each: one of thousands of texts does not keep the others waiting for its end.
class ModelEmbedder : public Embedder {
 public:
  struct Options {
    std::optional<Pooling> pooling = {};  ///< else the model's own
    bool matryoshka = false;              ///< vectors may be shortened, whatever the model's files say
  };

  ModelEmbedder(EmbeddingModel model, std::string name, const Options& options);

  const std::string& name() const override { return name_; }
  std::int64_t dimension() const override { return model_.dimension(); }
  Widths widths() const override;
  std::int64_t max_tokens() const override { return model_.max_length(); }
  std::int64_t vocabulary() const override { return vocabulary_; }
  Tokens tokenize(const std::string& text) const override { return model_.tokenize(text); }
  std::vector<std::vector<float>> embed(const std::vector<Tokens>& texts,
                                        const std::function<bool()>& go_on) override;

 private:
  class Turn;

  EmbeddingModel model_;
  std::string name_;
  Options options_;
  std::int64_t vocabulary_;
  std::mutex mutex_;
  std::condition_variable next_;
  std::deque<const Turn*> waiting_;  // the first has the model
};

}  // namespace caldera::serve
