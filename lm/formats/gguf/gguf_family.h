// Says how the GGUF files of a family differ from its Hugging Face folders: names and content. What
// convert_hf_to_gguf.py of llama.cpp does is in these tables, for reading and for writing. Private to
// lm/formats/.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace caldera::detail {

/// A tensor's name in both worlds without ".weight" or ".bias"; '*' is the number of a layer.
struct NamePair {
  std::string_view gguf;
  std::string_view hugging_face;
};

struct GgufFamily {
  std::string_view architecture;  ///< general.architecture
  std::string_view model_type;
  std::string_view hugging_face;  ///< architectures[0]
  std::string_view hidden_act;
  /// Names of its own; they go before kDecoderNames unless it says that those do not count.
  std::span<const NamePair> names;
  bool decoder_names = true;
  /// Rows of q_proj and k_proj lie as rotary positions by neighbours want them: row h*d + 2i + j of the file
  /// is row h*d + j*d/2 + i.
  bool interleaved_rotary = false;
  /// This was added to every tensor whose name ends in "norm.weight".
  double norm_shift = 0;
  /// Matrices of layers are transposed: GPT-2's Conv1D.
  bool transposed = false;
  /// Positions look at later ones too.
  bool bidirectional = false;
};

/// The family of a general.architecture, or of a model_type; null for an unknown one.
const GgufFamily* gguf_family(std::string_view architecture);
const GgufFamily* gguf_family_of_model_type(std::string_view model_type);
/// The architectures that are known, for messages.
std::string known_gguf_architectures();

/// A tensor's name translated, suffix and all; nothing for one that the tables do not know.
std::optional<std::string> to_hugging_face(const GgufFamily& family, std::string_view gguf);
std::optional<std::string> to_gguf(const GgufFamily& family, std::string_view hugging_face);

}  // namespace caldera::detail
