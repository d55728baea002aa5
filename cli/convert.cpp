// caldera convert: a model in another format, or with its weights in another type.
#include "lm/formats/convert/convert.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "cli/arguments/model_flags.h"
#include "cli/command.h"
#include "cli/files/inputs.h"
#include "cli/files/outputs.h"
#include "lm/adapters/adapter_formats.h"

namespace caldera::cli {
namespace {

struct FormatName {
  const char* name;
  ModelFormat format;
};
constexpr std::array<FormatName, 3> kFormats{
    {{"safetensors", ModelFormat::safetensors}, {"gguf", ModelFormat::gguf}, {"mlx", ModelFormat::mlx}}};

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  names.reserve(kFormats.size());
  for (const FormatName& format : kFormats) names.emplace_back(format.name);
  return names;
}

class ConvertCommand : public Command {
 public:
  ConvertCommand() : Command("convert", "Write a model in another format or type of weights") {}

 protected:
  void add_options(Arguments& args) override {
    declare_model(args, model_);
    args.option("--out", out_, "Folder to write; of GGUF a file").required().type_name("PATH");
    args.option(
            "--adapter", adapter_,
            "Write this adapter (a folder of PEFT or mlx-lm, or a file of GGUF) in another format, not the "
            "model")
        .type_name("PATH");
    std::vector<std::string> formats = format_names();
    formats.emplace_back("peft");
    args.option("--to", to_, "Format to write; of adapters peft, mlx, gguf")
        .required()
        .type_name("FORMAT")
        .one_of(formats);
    std::string help;
    std::vector<std::string> all;
    for (const auto& [name, format] : kFormats) {
      std::vector<std::string> types = weight_types(format);
      for (const std::string& type : types)
        if (std::ranges::find(all, type) == all.end()) all.push_back(type);
      types.front() += " (default)";
      help += fmt::format("{}{} of {}", help.empty() ? "" : "; ", fmt::join(types, ", "), name);
    }
    args.option("--type", type_, "What matrices are stored as: " + help).type_name("TYPE").one_of(all);
  }

  void run() override {
    if (!adapter_.empty()) return write_adapter();
    if (to_ == "peft") throw UsageError("--to peft: is a format of adapters; give --adapter");
    const ModelFormat format = std::ranges::find(kFormats, std::string_view(to_), &FormatName::name)->format;
    const std::vector<std::string> types = weight_types(format);
    if (!type_.empty() && std::ranges::find(types, type_) == types.end())
      throw UsageError(fmt::format("--type {} does not go with --to {}, which has {}", type_, to_,
                                   fmt::join(types, ", ")));
    if (format == ModelFormat::gguf)
      check_output_file(out_, "--out");
    else
      check_output_folder(out_, {"config.json", "model.safetensors"}, "--out");
    refuse_same_place();
    if (device_given()) open_device();
    const Converted converted = convert_model(model_, out_, {.to = format, .type = type_});
    if (json()) {
      return print_json(
          {{"out", converted.out.string()}, {"tensors", converted.tensors}, {"bytes", converted.bytes}});
    }
    note(fmt::format("{}: {} tensors, {} bytes", converted.out.string(), converted.tensors, converted.bytes));
  }

 private:
  void write_adapter() {
    if (to_ == "safetensors") throw UsageError("--to safetensors: adapters are written as peft, mlx or gguf");
    if (!type_.empty()) throw UsageError("--type: adapters are written in f32");
    std::error_code ignored;
    if (std::filesystem::equivalent(adapter_, out_, ignored))
      throw UsageError(fmt::format("--out {} is the adapter itself; name another place", out_));
    if (to_ == "gguf")
      check_output_file(out_, "--out");
    else
      check_output_folder(out_, {"adapter_config.json"}, "--out");
    const std::unique_ptr<CausalLM> model = open_model(model_, open_device());
    convert_adapter(*model, adapter_,
                    to_ == "gguf"  ? AdapterFormat::gguf
                    : to_ == "mlx" ? AdapterFormat::mlx
                                   : AdapterFormat::peft,
                    out_);
    if (json()) return print_json({{"out", out_}});
    note(fmt::format("adapter: {}", out_));
  }

  /// The weights are read while the new ones are written, and the folder's other files would be lost.
  void refuse_same_place() const {
    std::error_code ignored;
    if (std::filesystem::equivalent(model_, out_, ignored))
      throw UsageError(fmt::format("--out {} is the model itself; name another place", out_));
  }

  std::string model_;
  std::string adapter_;
  std::string out_;
  std::string to_;
  std::string type_;
};

}  // namespace

CommandPtr make_convert_command() { return std::make_unique<ConvertCommand>(); }

}  // namespace caldera::cli
