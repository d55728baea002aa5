// What a test may not expect where sanitizers watch.
#pragma once

namespace caldera::testing {

/// AddressSanitizer sees every block by itself: nothing keeps memory to use it again (small_memory.h, the
/// CPU's allocator), so that a use after it was given back is found.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kKeepsMemory = false;
#else
inline constexpr bool kKeepsMemory = true;
#endif

/// Sanitizers make frames larger and everything slower.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace caldera::testing
