// dispatch: the C++ type of a dtype, among all or among some of them.
#include "engine/tensor/dispatch.h"

#include <gtest/gtest.h>

#include <string>
#include <type_traits>

#include "engine/base/error.h"

namespace caldera::testing {
namespace {

TEST(Dispatch, GivesTheTypeOfEveryDtype) {
  for (const DType type : kAllDTypes) {
    EXPECT_EQ(dispatch(type, []<class T>() { return dtype_of<T>(); }), type);
    EXPECT_EQ(dispatch(type, []<class T>() { return sizeof(T); }), size_of(type));
    EXPECT_EQ(dispatch(type, []<class T>() { return sizeof(Stored<T>); }), size_of(type));
    EXPECT_EQ(dispatch(type, []<class T>() { return kIsHalf<T>; }), is_half(type));
  }
  static_assert(dispatch(DType::i16, []<class T>() { return dtype_of<T>(); }) == DType::i16);
}

template <bool (*kAmong)(DType)>
void check_among() {
  for (const DType type : kAllDTypes) {
    SCOPED_TRACE(std::string(name(type)));
    int calls = 0;
    const auto count = [&]<class T>() {
      static_assert(kAmong(dtype_of<T>()), "instantiated for a type that is not among them");
      calls += dtype_of<T>() == type ? 1 : 100;
    };
    if (kAmong(type))
      dispatch<kAmong>(type, count);
    else
      EXPECT_THROW(dispatch<kAmong>(type, count), DTypeError);
    EXPECT_EQ(calls, kAmong(type) ? 1 : 0);
  }
}

constexpr bool is_single(DType type) { return type == DType::f32; }

TEST(Dispatch, TakesOnlyThoseItIsMadeFor) {
  check_among<is_any_type>();
  check_among<is_floating>();
  check_among<is_integral>();
  check_among<is_narrow_integer>();
  check_among<is_compute_type>();
  check_among<is_compute_number>();
  check_among<is_single>();
}

TEST(Dispatch, RefusesWhatIsNoDtype) {
  EXPECT_THROW(dispatch(static_cast<DType>(kDTypeCount), []<class T>() {}), DTypeError);
}

TEST(Dispatch, ElementsHoldNumbers) {
  for (const DType type : kAllDTypes) {
    SCOPED_TRACE(std::string(name(type)));
    const auto held = [&](double number) {
      return dispatch(
          type, [&]<class T>() -> double { return static_cast<double>(to_number(to_element<T>(number))); });
    };
    EXPECT_EQ(held(1), 1);
    EXPECT_EQ(held(100), type == DType::boolean ? 1 : 100);
    // Of 257 the last of 9 bits is lost where there are 8.
    if (is_floating(type)) {
      EXPECT_EQ(held(257), type == DType::bf16 ? 256 : 257);
    }
  }
  static_assert(std::is_same_v<decltype(to_number(Half{})), float>);
  static_assert(std::is_same_v<decltype(to_number(true)), bool>);
  EXPECT_EQ(to_element<Half>(65504.0).bits, 0x7bff);
  EXPECT_EQ(to_element<BFloat16>(-2.0F).bits, 0xc000);
}

}  // namespace
}  // namespace caldera::testing
