// Says which of several texts means most nearly what the first one says: embed MODEL TEXT TEXT...
#include <caldera/caldera.h>
#include <caldera/lm.h>

#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  using namespace caldera;  // NOLINT(google-build-using-namespace): an example may
  if (argc < 4) {
    std::fprintf(stderr, "usage: embed MODEL TEXT TEXT...\n");
    return 2;
  }
  try {
    EmbeddingModel model = EmbeddingModel::from_pretrained(argv[1], default_device());
    const std::vector<std::string> texts(argv + 2, argv + argc);
    const EncodedTexts encoded = model.encode(texts, {.normalize = true});

    // Of vectors of length 1 the product is the cosine of the angle between them.
    const std::vector<float>& first = encoded.embeddings[0];
    for (std::size_t i = 1; i < texts.size(); ++i) {
      const std::vector<float>& other = encoded.embeddings[i];
      const float cosine = std::inner_product(first.begin(), first.end(), other.begin(), 0.0F);
      std::printf("%6.3f  %s\n", static_cast<double>(cosine), texts[i].c_str());
    }
  } catch (const Error& error) {
    std::fprintf(stderr, "embed: %s\n", error.what());
    return 1;
  }
}
