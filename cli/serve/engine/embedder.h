// Embedder: what makes vectors of texts for the server.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace caldera::serve {

/// The functions may be called from any thread.
class Embedder {
 public:
  struct Result {
    std::vector<std::vector<float>> vectors;
    std::int64_t tokens = 0;
  };

  virtual ~Embedder() = default;
  Embedder(const Embedder&) = delete;
  Embedder& operator=(const Embedder&) = delete;

  /// What clients call the model.
  virtual const std::string& name() const = 0;
  /// The width of the vectors.
  virtual std::int64_t dimension() const = 0;
  /// A vector a text. Throws ValueError where a text is at fault.
  virtual Result embed(const std::vector<std::string>& texts) = 0;

 protected:
  Embedder() = default;
};

}  // namespace caldera::serve
