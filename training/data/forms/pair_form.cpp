// {"prompt", "chosen", "rejected"}: an answer that was preferred to another, as texts or lists of messages.
#include <nlohmann/json.hpp>

#include "training/data/forms/chat_format.h"
#include "training/data/forms/form.h"

namespace caldera::detail {
namespace {

// The messages that both answers begin with, where the prompt is not told apart from them.
std::size_t common_messages(const nlohmann::ordered_json& a, const nlohmann::ordered_json& b) {
  std::size_t n = 0;
  while (n < a.size() && n < b.size() && a[n] == b[n]) ++n;
  return n;
}

nlohmann::ordered_json part(const nlohmann::ordered_json& messages, std::size_t begin, std::size_t end) {
  nlohmann::ordered_json result = nlohmann::ordered_json::array();
  for (std::size_t i = begin; i < end; ++i) result.push_back(messages[i]);
  return result;
}

Example read_chat_pair(const DataLine& line) {
  const JsonFields& fields = line.fields;
  nlohmann::ordered_json chosen = chat_messages(line, "chosen");
  nlohmann::ordered_json rejected = chat_messages(line, "rejected");
  nlohmann::ordered_json prompt;
  if (fields.has("prompt")) {
    prompt = chat_messages(line, "prompt");
  } else {
    const std::size_t common = common_messages(chosen, rejected);
    if (common == 0)
      fields.fail("chosen", "and 'rejected' begin with no message in common, and there is no 'prompt'");
    if (common == chosen.size() || common == rejected.size())
      fields.fail("chosen", "and 'rejected' say the same, or one of them ends where the other goes on");
    prompt = part(chosen, 0, common);
    chosen = part(chosen, common, chosen.size());
    rejected = part(rejected, common, rejected.size());
  }
  const nlohmann::ordered_json tools = chat_tools(line);
  Example example = line.chat->answer(prompt, chosen, tools);
  example.rejected = line.chat->answer(prompt, rejected, tools).text;
  example.kind = ExampleKind::preference;
  return example;
}

Example read_pair(const DataLine& line) {
  const JsonFields& fields = line.fields;
  if (fields.kind("chosen") == JsonKind::list && fields.kind("rejected") == JsonKind::list)
    return read_chat_pair(line);
  return {.prompt = fields.require_string("prompt"),
          .text = fields.require_string("chosen"),
          .rejected = fields.require_string("rejected"),
          .kind = ExampleKind::preference};
}

}  // namespace

DataForm pair_form() {
  return {.shown = "{\"prompt\", \"chosen\", \"rejected\"}",
          .is_that = [](const JsonFields& fields) { return fields.has("chosen") || fields.has("rejected"); },
          .read = read_pair};
}

}  // namespace caldera::detail
