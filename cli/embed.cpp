// caldera embed: texts to vectors.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/arguments/command.h"
#include "cli/arguments/model_flags.h"
#include "cli/files/inputs.h"
#include "lm/embed/embedding_model.h"

namespace caldera::cli {
namespace {

/// The lines of a file, without their ends. What is behind the last line's end is a line, unless empty.
std::vector<std::string> lines_of(const std::string& path) {
  std::istringstream text(read_text_input(path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) {
    if (line.ends_with('\r')) line.pop_back();
    lines.push_back(line);
  }
  return lines;
}

class EmbedCommand : public Command {
 public:
  EmbedCommand() : Command("embed", "Turn texts into vectors that are near where the texts are alike") {}

 protected:
  void add_options(Arguments& args) override {
    declare_model(args, model_);
    Arguments input = args.one_required("input", "One of these");
    text_option_ = input.option("--text", text_, "A text").type_name("S");
    input.option("--file", file_, "A file with a text on each line, or - for standard input").type_name("F");
    pooling_option_ = declare_pooling(args, pooling_);
    args.flag("--normalize", normalize_,
              "Scale the vectors to length 1, also where the model does not say so");
    prompt_option_ = args.option("--prompt-name", prompt_,
                                 "One of the prompts that the model has for its texts, \"query\" say")
                         .type_name("NAME");
    args.option("--batch-size", batch_size_, "Texts at a time").type_name("N").show_default();
    declare_dtype(args, dtype_);
  }

  void run() override {
    const std::vector<std::string> texts =
        text_option_.given() ? std::vector<std::string>{text_} : lines_of(file_);
    if (batch_size_ < 1) throw UsageError("--batch-size must be positive");
    EmbeddingModel model = EmbeddingModel::from_pretrained(model_, open_device(), parse_dtype(dtype_));
    EncodeOptions options;
    if (pooling_option_.given()) options.pooling = pooling_of(pooling_);
    if (normalize_) options.normalize = true;
    if (prompt_option_.given()) options.prompt_name = prompt_;
    options.batch_size = batch_size_;
    const EncodedTexts encoded = model.encode(texts, options);
    tell_cuts(encoded, model.max_length());
    if (json())
      return print_json(
          {{"embeddings", encoded.embeddings}, {"tokens", encoded.tokens}, {"left_out", encoded.left_out}});
    for (const std::vector<float>& embedding : encoded.embeddings)
      fmt::print("{}\n", fmt::join(embedding, " "));
  }

 private:
  /// Says which texts were too long: what is behind the model's end counts for nothing.
  void tell_cuts(const EncodedTexts& encoded, std::int64_t most) const {
    constexpr int kTold = 5;
    int cut = 0;
    for (std::size_t i = 0; i < encoded.left_out.size(); ++i) {
      if (encoded.left_out[i] == 0 || ++cut > kTold) continue;
      note(fmt::format("text {} has {} tokens; the model takes {} at most, so {} were left out", i + 1,
                       encoded.tokens[i] + encoded.left_out[i], most, encoded.left_out[i]));
    }
    if (cut > kTold) note(fmt::format("{} texts were cut in all", cut));
  }

  std::string model_;
  std::string text_;
  std::string file_;
  std::string pooling_;
  std::string prompt_;
  std::string dtype_ = "f32";
  std::int64_t batch_size_ = 32;
  bool normalize_ = false;
  Option text_option_;
  Option pooling_option_;
  Option prompt_option_;
};

}  // namespace

CommandPtr make_embed_command() { return std::make_unique<EmbedCommand>(); }

}  // namespace caldera::cli
