// Which of a model's files its chat templates come from, and which template is chosen.
#include "lm/chat/model_chat_templates.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/messages.h"
#include "tests/support/temp_folder.h"

namespace caldera {
namespace {

class ModelFolder {
 public:
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path() / name).parent_path());
    std::ofstream(path() / name) << text;
  }
  ModelChatTemplates load() const { return load_chat_templates(path()); }
  std::filesystem::path path() const { return folder_.path(); }

 private:
  testing::TempFolder folder_;
};

TEST(ModelChatTemplates, FilesGoBeforeConfigurations) {
  const ModelFolder model;
  EXPECT_TRUE(model.load().templates.empty());
  model.write("tokenizer_config.json", R"({"chat_template": "from the configuration"})");
  EXPECT_EQ(model.load().source(), "from the configuration");
  model.write("chat_template.json", R"({"chat_template": "from the processor"})");
  EXPECT_EQ(model.load().source(), "from the processor");
  model.write("chat_template.jinja", "from the file");
  model.write("additional_chat_templates/rag.jinja", "for documents");
  EXPECT_EQ(model.load().source(), "from the file");
  EXPECT_EQ(model.load().source("rag"), "for documents");
}

TEST(ModelChatTemplates, ToolsHaveTheirOwn) {
  const ModelFolder model;
  model.write("tokenizer_config.json", R"({"chat_template": [{"name": "default", "template": "plain"},
                                           {"name": "tool_use", "template": "with tools"}]})");
  const ModelChatTemplates chat = model.load();
  EXPECT_EQ(chat.source(), "plain");
  EXPECT_EQ(chat.source({}, true), "with tools");
  EXPECT_EQ(chat.source("default", true), "plain");
  const std::string message = testing::message_of<ValueError>([&] { chat.source("rag"); });
  EXPECT_MENTIONS(message, "no chat template named 'rag' (there are: default, tool_use)");
}

TEST(ModelChatTemplates, SpecialTokensAreVariables) {
  const ModelFolder model;
  model.write("tokenizer_config.json",
              R"({"bos_token": {"content": "<s>", "lstrip": false}, "eos_token": "</s>",
                                           "unk_token": null, "add_bos_token": true, "chat_template": ""})");
  model.write("special_tokens_map.json", R"({"eos_token": "other", "pad_token": "<pad>"})");
  ChatTemplateInput input;
  input.variables["pad_token"] = "mine";
  model.load().add_special_tokens(input);
  EXPECT_EQ(input.bos_token, "<s>");
  EXPECT_EQ(input.eos_token, "</s>");
  EXPECT_EQ(input.variables, nlohmann::ordered_json({{"pad_token", "mine"}}));
}

TEST(ModelChatTemplates, WrongFilesAreRefused) {
  const ModelFolder model;
  for (const char* wrong : {"[]", R"({"chat_template": 1})", R"({"chat_template": ["a"]})",
                            R"({"chat_template": [{"name": "a"}]})", R"({"bos_token": {"content": 1}})"}) {
    model.write("tokenizer_config.json", wrong);
    EXPECT_THROW(model.load(), FileError) << wrong;
  }
  EXPECT_THROW(load_chat_templates(model.path() / "none"), FileError);
}

}  // namespace
}  // namespace caldera
