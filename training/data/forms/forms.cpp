#include "training/data/forms/forms.h"

#include <algorithm>

// A line a form: F(NAME) stands for `DataForm NAME_form()` of data/NAME_form.cpp. The more particular first.
#define CALDERA_DATA_FORMS(F) \
  F(pair)                     \
  F(similar)                  \
  F(prompt)                   \
  F(chat)                     \
  F(completion)               \
  F(text)

namespace caldera::detail {

#define CALDERA_DECLARE_FORM(name) DataForm name##_form();
CALDERA_DATA_FORMS(CALDERA_DECLARE_FORM)
#undef CALDERA_DECLARE_FORM

const std::vector<DataForm>& data_forms() {
#define CALDERA_CALL_FORM(name) name##_form(),
  static const std::vector<DataForm> kForms{CALDERA_DATA_FORMS(CALDERA_CALL_FORM)};
#undef CALDERA_CALL_FORM
  return kForms;
}

std::vector<std::string> data_fields() {
  std::vector<std::string> fields;
  for (const DataForm& form : data_forms()) {
    // The names are what stands in quotes in {"prompt", "completion"}.
    std::string_view left = form.shown;
    for (std::size_t begin = left.find('"'); begin != left.npos; begin = left.find('"')) {
      const std::size_t end = left.find('"', begin + 1);
      std::string name(left.substr(begin + 1, end - begin - 1));
      if (std::ranges::find(fields, name) == fields.end()) fields.push_back(std::move(name));
      left.remove_prefix(end + 1);
    }
  }
  fields.emplace_back("tools");
  fields.emplace_back("label");
  return fields;
}

}  // namespace caldera::detail
