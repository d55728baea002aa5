// The fixed parts of a run's page. Private to training/.
#pragma once

#include <string>
#include <string_view>

namespace caldera::report_page {

extern const char* const kStyle;
extern const char* const kBody;
/// Reads the data, D, from the element "run", and draws charts, cards and tables.
extern const char* const kCommonScript;
/// Fills the body with one run; with several.
extern const char* const kRunScript;
extern const char* const kCompareScript;

/// Makes the page of these parts. `data` is JSON; `head` is put into the head.
std::string make_page(const std::string& data, const char* script, const char* head = "");
/// Surround the data in a page.
inline constexpr std::string_view kDataBegin = "<script type=\"application/json\" id=\"run\">";
inline constexpr std::string_view kDataEnd = "</script>";

}  // namespace caldera::report_page
