// The fixed parts of the page that `to_html` writes. Internal to the runtime.
#pragma once

namespace caldera::explain_page {

/// Up to the page's data: head with its style, and the sections.
extern const char* const kStyle;
extern const char* const kBody;
/// Lays out and draws graphs: `drawGraph(element, nodes, edges, select)`.
extern const char* const kGraphScript;
/// Fills the sections from the data.
extern const char* const kPageScript;

}  // namespace caldera::explain_page
