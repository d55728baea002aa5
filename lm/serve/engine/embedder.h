// Embedder: what makes vectors of texts for the server.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace caldera::serve {

/// The functions may be called from any thread.
class Embedder {
 public:
  using Tokens = std::vector<std::int32_t>;
  /// Widths that vectors may be shortened to.
  struct Widths {
    bool any = false;                       ///< any below the model's
    std::vector<std::int64_t> listed = {};  ///< else these; none: vectors stay as they are
  };

  virtual ~Embedder() = default;
  Embedder(const Embedder&) = delete;
  Embedder& operator=(const Embedder&) = delete;

  /// Returns the name that clients call the model by.
  virtual const std::string& name() const = 0;
  /// The width of the vectors.
  virtual std::int64_t dimension() const = 0;
  virtual Widths widths() const { return {}; }
  /// Tokens of a text at most, and how many different ones there are.
  virtual std::int64_t max_tokens() const = 0;
  virtual std::int64_t vocabulary() const = 0;
  /// The tokens of a text, with those that the model expects around it.
  virtual Tokens tokenize(const std::string& text) const = 0;
  /// A vector of length 1 for each text, of max_tokens() at most and not empty. Waits while others are
  /// served. Asks `go_on` every now and then, and returns nothing at all once that says no.
  virtual std::vector<std::vector<float>> embed(const std::vector<Tokens>& texts,
                                                const std::function<bool()>& go_on) = 0;

 protected:
  Embedder() = default;
};

}  // namespace caldera::serve
