// caldera fuse: a model with an adapter merged into its weights.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/arguments/command.h"
#include "cli/arguments/model_flags.h"
#include "cli/files/model_output.h"
#include "lm/adapters/merge.h"
#include "lm/base/weighted_path.h"

namespace caldera::cli {
namespace {

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
        .one_of(model_format_names())
        .show_default("gguf for a GGUF file, else safetensors");
    args.option("--type", type_, "What matrices are stored as, as of convert (default: as the model's are)")
        .type_name("TYPE");
  }

  void run() override {
    if (to_.empty()) to_ = std::filesystem::path(model_).extension() == ".gguf" ? "gguf" : "safetensors";
    FuseOptions options{.to = model_format(to_), .type = type_};
    check_weight_type(options.to, type_);
    try {
      for (const std::string& adapter : adapters_)
        options.adapters.push_back(parse_weighted_path(adapter, "an adapter"));
    } catch (const ValueError& error) {
      throw UsageError(fmt::format("--adapter {}", error.what()));
    }
    check_model_output(options.to, out_);
    check_other_place(model_, out_);
    const Device device = open_device();
    const Fused fused = fuse_model(model_, out_, options, device);
    if (json()) {
      return print_json({{"out", fused.out.string()},
                         {"merged_modules", fused.merged_modules},
                         {"type", fused.type},
                         {"largest_logit_difference", fused.largest_logit_difference}});
    }
    if (type_.empty() && fused.type != fused.model_type)
      note(fmt::format("note: the model's matrices are {}, which --to {} does not write: --type has others",
                       fused.model_type, to_));
    note(fmt::format("{}: {} modules merged, matrices as {}; logits differ by at most {:.3g} from those {}",
                     fused.out.string(), fused.merged_modules, fused.type, fused.largest_logit_difference,
                     options.adapters.size() == 1 && options.adapters.front().weight == 1
                         ? "with the adapter beside"
                         : "of the adapters merged in f32"));
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
