#include "training/data/forms.h"

// A line a form: F(NAME) stands for `DataForm NAME_form()` of data/NAME_form.cpp. The more particular first.
#define CALDERA_DATA_FORMS(F) \
  F(pair)                     \
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

}  // namespace caldera::detail
