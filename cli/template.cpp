// caldera template: a conversation as the text that a model reads.
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/arguments/command.h"
#include "lm/base/atomic_file.h"
#include "lm/chat/conversation.h"
#include "lm/chat/model_chat_templates.h"

namespace caldera::cli {
namespace {

using nlohmann::ordered_json;

/// "2026-11-22 12:00:00", "2026-11-22T12:00" or "2026-11-22".
std::chrono::local_time<std::chrono::microseconds> parse_time(const std::string& text) {
  int year = 0;
  unsigned month = 0;
  unsigned day = 0;
  int hour = 0;
  int minute = 0;
  int second = 0;
  char between = ' ';
  int end = 0;
  const auto size = static_cast<int>(text.size());
  const char* c = text.c_str();
  // sscanf would take signs and more spaces.
  const bool plain = text.find_first_not_of("0123456789-: T") == text.npos;
  bool fits = std::sscanf(c, "%4d-%2u-%2u%n", &year, &month, &day, &end) == 3 && end == size;
  fits = fits || (std::sscanf(c, "%4d-%2u-%2u%c%2d:%2d%n", &year, &month, &day, &between, &hour, &minute,
                              &end) == 6 &&
                  end == size);
  fits = fits || (std::sscanf(c, "%4d-%2u-%2u%c%2d:%2d:%2d%n", &year, &month, &day, &between, &hour, &minute,
                              &second, &end) == 7 &&
                  end == size);
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                         std::chrono::day(day)};
  const bool in_range = year >= 1 && date.ok() && hour >= 0 && hour < 24 && minute >= 0 && minute < 60 &&
                        second >= 0 && second < 60 && (between == ' ' || between == 'T');
  if (!plain || !fits || !in_range)
    throw UsageError(fmt::format("--now: '{}' is no time like \"2026-11-22 12:00:00\"", text));
  return std::chrono::local_days(date) + std::chrono::hours(hour) + std::chrono::minutes(minute) +
         std::chrono::seconds(second);
}

class TemplateCommand : public Command {
 public:
  TemplateCommand() : Command("template", "Render a conversation with a model's chat template") {}

 protected:
  void add_options(Arguments& args) override {
    Arguments source = args.one_required("template", "One of these");
    model_option_ = source.option("--model", model_, "The model whose chat template it is").type_name("DIR");
    source.option("--template", template_, "A file that holds the template").type_name("FILE");
    args.option("--messages", messages_,
                "A JSON object with messages, and tools, add_generation_prompt and other variables as the "
                "template knows them; or the list of messages alone")
        .type_name("FILE")
        .required();
    args.option("--name", name_, "Which template, of a model that has several").type_name("NAME");
    now_option_ = args.option("--now", now_, "The time that strftime_now tells; else the clock's")
                      .type_name("\"Y-M-D H:M:S\"");
    for (SpecialToken& token : tokens_)
      token.option =
          args.option(token.flag, token.text, fmt::format("The text of {}; else the model's", token.name))
              .type_name("S");
  }

  void run() override {
    if (device_given()) open_device();
    ChatTemplateInput input = read_conversation(messages_);
    if (now_option_.given()) input.now = parse_time(now_);
    for (const SpecialToken& token : tokens_) {
      if (!token.option.given()) continue;
      input.variables.erase(token.name);
      if (token.name == std::string_view("bos_token"))
        input.bos_token = token.text;
      else if (token.name == std::string_view("eos_token"))
        input.eos_token = token.text;
      else
        input.variables[token.name] = token.text;
    }
    const RenderedChat rendered = render(input);
    if (json()) {
      ordered_json spans = ordered_json::array();
      for (const ChatSpan& span : rendered.generation) spans.push_back({span.first, span.last});
      return print_json({{"text", rendered.text}, {"spans", spans}});
    }
    std::fwrite(rendered.text.data(), 1, rendered.text.size(), stdout);
  }

 private:
  struct SpecialToken {
    const char* flag;
    const char* name;
    std::string text = {};
    Option option = {};
  };

  RenderedChat render(ChatTemplateInput& input) const {
    if (!model_option_.given()) return ChatTemplate(read_text_file(template_)).render(input);
    const ModelChatTemplates model = load_chat_templates(model_);
    model.add_special_tokens(input);
    return ChatTemplate(model.source(name_, !input.tools.is_null())).render(input);
  }

  std::string model_;
  std::string template_;
  std::string messages_;
  std::string name_;
  std::string now_;
  Option model_option_;
  Option now_option_;
  std::array<SpecialToken, 4> tokens_{
      {{"--bos", "bos_token"}, {"--eos", "eos_token"}, {"--pad", "pad_token"}, {"--unk", "unk_token"}}};
};

}  // namespace

CommandPtr make_template_command() { return std::make_unique<TemplateCommand>(); }

}  // namespace caldera::cli
