// caldera fuse: a model with an adapter merged into its weights.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

#include "cli/arguments/model_flags.h"
#include "cli/command.h"
#include "cli/files/outputs.h"
#include "lm/adapters/merge.h"

namespace caldera::cli {
namespace {

struct FuseFormat {
  const char* name;
  ModelFormat format;
};
constexpr std::array<FuseFormat, 3> kFuseFormats{
    {{"safetensors", ModelFormat::safetensors}, {"gguf", ModelFormat::gguf}, {"mlx", ModelFormat::mlx}}};

/// "DIR" or "DIR:0.5".
WeightedAdapter read_adapter_flag(const std::string& text) {
  std::error_code ignored;
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos || std::filesystem::exists(text, ignored)) return {.path = text};
  double weight = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data() + colon + 1, end, weight);
  if (error != std::errc() || stopped != end) return {.path = text};
  return {.path = text.substr(0, colon), .weight = weight};
}

class FuseCommand : public Command {
 public:
  FuseCommand() : Command("fuse", "Write a model with an adapter merged into its weights") {}

 protected:
  void add_options(Arguments& args) override {
    declare_model(args, model_);
    args.option("--adapter", adapters_,
                "Adapter folder; DIR:WEIGHT merges so much of it. Given several times, one after the other")
        .required()
        .repeatable()
        .type_name("DIR[:WEIGHT]");
    args.option("--out", out_, "Folder to write; of GGUF a file").required().type_name("PATH");
    args.option("--to", to_, "Format to write")
        .type_name("FORMAT")
        .one_of({"safetensors", "gguf", "mlx"})
        .show_default("gguf for a GGUF file, else safetensors");
    args.option("--type", type_, "What matrices are stored as, as of convert (default: as the model's are)")
        .type_name("TYPE");
  }

  void run() override {
    if (to_.empty()) to_ = std::filesystem::path(model_).extension() == ".gguf" ? "gguf" : "safetensors";
    FuseOptions options{
        .to = std::ranges::find(kFuseFormats, std::string_view(to_), &FuseFormat::name)->format,
        .type = type_};
    const std::vector<std::string> types = weight_types(options.to);
    if (!type_.empty() && std::ranges::find(types, type_) == types.end())
      throw UsageError(fmt::format("--type {} does not go with --to {}, which has {}", type_, to_,
                                   fmt::join(types, ", ")));
    for (const std::string& adapter : adapters_) options.adapters.push_back(read_adapter_flag(adapter));
    if (options.to == ModelFormat::gguf)
      check_output_file(out_, "--out");
    else
      check_output_folder(out_, {"config.json", "model.safetensors"}, "--out");
    std::error_code ignored;
    if (std::filesystem::equivalent(model_, out_, ignored))
      throw UsageError(fmt::format("--out {} is the model itself; name another place", out_));
    const Device device = open_device();
    const Fused fused = fuse_model(model_, out_, options, device);
    if (json()) {
      nlohmann::ordered_json document{{"out", fused.out.string()},
                                      {"merged_modules", fused.merged_modules},
                                      {"type", fused.type},
                                      {"largest_logit_difference", nullptr}};
      if (fused.largest_logit_difference)
        document["largest_logit_difference"] = *fused.largest_logit_difference;
      return print_json(document);
    }
    note(fmt::format("{}: {} modules merged, matrices as {}{}", fused.out.string(), fused.merged_modules,
                     fused.type,
                     fused.largest_logit_difference
                         ? fmt::format("; logits differ by at most {:.3g} from those with the adapter beside",
                                       *fused.largest_logit_difference)
                         : ""));
  }

 private:
  std::string model_;
  std::vector<std::string> adapters_;
  std::string out_;
  std::string to_;
  std::string type_;
};

}  // namespace

CommandPtr make_fuse_command() { return std::make_unique<FuseCommand>(); }

}  // namespace caldera::cli
