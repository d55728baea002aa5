// caldera convert: a model in another format, or with its weights in another type.
#include "lm/formats/convert/convert.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/arguments/command.h"
#include "cli/arguments/model_flags.h"
#include "cli/files/inputs.h"
#include "cli/files/model_output.h"
#include "cli/files/outputs.h"
#include "lm/adapters/adapter_formats.h"

namespace caldera::cli {
namespace {

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
    std::vector<std::string> formats = model_format_names();
    formats.emplace_back("peft");
    args.option("--to", to_, "Format to write; of adapters peft, mlx, gguf")
        .required()
        .type_name("FORMAT")
        .one_of(formats);
    std::string help;
    std::vector<std::string> all;
    for (const std::string& name : model_format_names()) {
      std::vector<std::string> types = weight_types(model_format(name));
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
    const ModelFormat format = model_format(to_);
    check_weight_type(format, type_);
    check_model_output(format, out_);
    check_other_place(model_, out_);
    if (device_given()) open_device();
    const Converted converted = convert_model(model_, out_, {.to = format, .type = type_});
    if (converted.matrices_as_floats > 0)
      note(fmt::format("{} of {} matrices stay floats: their rows are no whole blocks of {}",
                       converted.matrices_as_floats, converted.matrices, type_.empty() ? "affine4" : type_));
    if (json()) {
      return print_json({{"out", converted.out.string()},
                         {"tensors", converted.tensors},
                         {"bytes", converted.bytes},
                         {"matrices", converted.matrices},
                         {"matrices_as_floats", converted.matrices_as_floats}});
    }
    note(fmt::format("{}: {} tensors, {} bytes", converted.out.string(), converted.tensors, converted.bytes));
  }

 private:
  void write_adapter() {
    if (to_ == "safetensors") throw UsageError("--to safetensors: adapters are written as peft, mlx or gguf");
    if (!type_.empty()) throw UsageError("--type: adapters are written in f32");
    check_other_place(adapter_, out_);
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

  std::string model_;
  std::string adapter_;
  std::string out_;
  std::string to_;
  std::string type_;
};

}  // namespace

CommandPtr make_convert_command() { return std::make_unique<ConvertCommand>(); }

}  // namespace caldera::cli
