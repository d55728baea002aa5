// The fixed parts of a run's page. Private to training/report/.
#pragma once

namespace caldera::report_page {

extern const char* const kStyle;
extern const char* const kBody;
/// Fills the body from the data in the element "run".
extern const char* const kScript;

}  // namespace caldera::report_page
