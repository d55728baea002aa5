// caldera tokenize: text to token ids and back.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/arguments/command.h"
#include "cli/arguments/model_flags.h"
#include "cli/files/inputs.h"
#include "lm/tokenizers/sources/load_tokenizer.h"

namespace caldera::cli {
namespace {

class TokenizeCommand : public Command {
 public:
  TokenizeCommand() : Command("tokenize", "Turn text into token ids, or ids into text") {}

 protected:
  void add_options(Arguments& args) override {
    declare_model(args, model_);
    Arguments input = args.one_required("input", "One of these");
    text_option_ = input.option("--text", text_, "The text").type_name("S");
    file_option_ = input.option("--file", file_, "A file whose content is the text, or - for standard input")
                       .type_name("F");
    input
        .option("--decode", decode_,
                "Token ids to turn into text, as in \"1 2 3\"; special tokens are left out")
        .type_name("IDS");
    args.flag("--no-special", no_special_, "Add no special tokens (a bos, say) to the text's own");
  }

  void run() override {
    if (device_given()) open_device();
    const bool encode = text_option_.given() || file_option_.given();
    std::vector<std::int32_t> ids;
    if (!encode) ids = parse_ids(decode_, "--decode");
    const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(model_);
    if (encode) {
      ids = tokenizer->encode(file_option_.given() ? read_text_input(file_) : text_, !no_special_);
      if (json()) return print_json({{"ids", ids}});
      fmt::print("{}\n", fmt::join(ids, " "));
    } else {
      const std::string text = tokenizer->decode(ids);
      if (json()) return print_json({{"text", text}});
      fmt::print("{}\n", text);
    }
  }

 private:
  std::string model_;
  std::string text_;
  std::string file_;
  std::string decode_;
  bool no_special_ = false;
  Option text_option_;
  Option file_option_;
};

}  // namespace

CommandPtr make_tokenize_command() { return std::make_unique<TokenizeCommand>(); }

}  // namespace caldera::cli
