// The families of checks: a function each, in a source of its own. The list of them all is in families.cpp.
#pragma once

#include "engine/check/doctor/examination.h"

namespace caldera::doctor {

void check_elementwise(Examination& x);
void check_casts(Examination& x);
void check_special_values(Examination& x);
void check_random(Examination& x);
void check_reductions(Examination& x);
void check_rows(Examination& x);
void check_products(Examination& x);
void check_indexed(Examination& x);
void check_quantized(Examination& x);
void check_attention(Examination& x);
/// A few of them, on operands of f32 and f16. `rounds_weights`: to f16, where the operands are that.
void check_attention_variant(Examination& x, bool rounds_weights);
void check_replay(Examination& x);
void check_transfers(Examination& x);
void check_memory(Examination& x);
void check_large(Examination& x);

}  // namespace caldera::doctor
