// What is made of drivers' statistics and listings, and the times that are estimated from them, against
// numbers worked out by hand.
#include <gtest/gtest.h>

#include "engine/survey/cards.h"
#include "engine/survey/roofline.h"

namespace caldera {
namespace {

TEST(Survey, StatisticsOfDriversGoToTheirColumns) {
  const std::vector<NamedStatistic> radv{
      {"VGPRs", 96},        {"SGPRs", 108},         {"Spilled VGPRs", 3},
      {"Spilled SGPRs", 4}, {"LDS size", 17408},    {"Scratch size", 64},
      {"Code size", 9612},  {"Instructions", 2108}, {"Subgroups per SIMD", 12},
      {"Latency", 7256}};
  const KernelStatistics amd = sort_statistics(radv);
  EXPECT_EQ(amd.registers, 96);
  EXPECT_EQ(amd.scalar_registers, 108);
  EXPECT_EQ(amd.spills, 7);
  EXPECT_EQ(amd.shared_bytes, 17408);
  EXPECT_EQ(amd.scratch_bytes, 64);
  EXPECT_EQ(amd.code_bytes, 9612);
  EXPECT_EQ(amd.instructions, 2108);
  EXPECT_EQ(amd.occupancy, 12);
  EXPECT_EQ(amd.resident_invocations, 12 * 32 * 2);  // of two SIMDs
  ASSERT_EQ(amd.others.size(), 1U);
  EXPECT_EQ(amd.others[0].name, "Latency");
  EXPECT_EQ(amd.others[0].value, 7256);

  const std::vector<NamedStatistic> nvk{
      {"Instruction count", 126}, {"Max warps/SM", 48},   {"Spills to memory", 2}, {"Spills to reg", 5},
      {"Code size", 2016},        {"Number of GPRs", 32}, {"SLM size", 16}};
  const KernelStatistics nvidia = sort_statistics(nvk);
  EXPECT_EQ(nvidia.registers, 32);
  EXPECT_EQ(nvidia.spills, 2);  // what went to other registers is in no memory
  EXPECT_EQ(nvidia.scratch_bytes, 16);
  EXPECT_EQ(nvidia.resident_invocations, 48 * 32);
  EXPECT_EQ(nvidia.code_bytes, 2016);
  EXPECT_FALSE(nvidia.shared_bytes.has_value());

  const std::vector<NamedStatistic> turnip{{"NOPs Count", 82}, {"Code size", 544}, {"Registers used", 12}};
  EXPECT_EQ(sort_statistics(turnip).code_bytes, 4 * 544);
  EXPECT_EQ(sort_statistics(turnip).registers, 4 * 12);

  EXPECT_FALSE(sort_statistics({}).registers.has_value());
}

// A loop of eight turns over K with a loop of four within, entered in its middle; behind it a loop that has
// fewer multiply-adds although it is longer.
constexpr const char* kAmd = R"(BB0:
	s_load_b128 s[8:11], s[4:5], 0x30                           ; f4080202 f8000030
	s_mov_b32 s2, 0                                             ; be840000
BB1:
	global_load_b128 v[0:3], v4, s[2:3]                         ; dc5e0000
	ds_store_b128 v5, v[0:3]                                    ; d87c0000
	s_branch BB3                                                ; bfa00001
BB2:
	ds_load_2addr_b64 v[6:9], v5 offset1:1                      ; d9dc0000
	v_fmac_f32_e32 v10, v6, v7                                  ; 5614ff06
	v_dual_fmac_f32 v11, v8, v9 :: v_dual_fmac_f32 v12, v6, v9  ; c8000000
	v_add_nc_u32_e32 v20, 2, v20                                ; 4a000000
BB3:
	v_cmp_gt_u32_e32 vcc_lo, 8, v20                             ; 7c000000
	s_cbranch_vccnz BB2                                         ; bfa4fffa
BB4:
	s_add_i32 s2, s2, 16                                        ; 8182c202
	s_cmp_lt_i32 s2, s8                                         ; bf048002
	s_cbranch_scc1 BB1                                          ; bfa2fff0
BB5:
	v_fma_f32 v13, v10, v10, v11                                ; d6130000
	global_store_b32 v14, v13, s[2:3]                           ; dc6a0000
	s_endpgm                                                    ; bfb00000
)";

TEST(Survey, ListingOfRadv) {
  const auto code = read_code("Assembly", kAmd);
  ASSERT_TRUE(code && code->product);
  // Each line once.
  EXPECT_EQ(code->whole.instructions, 17);
  EXPECT_EQ(code->whole.f32_flops, 2 + 4 + 2);
  EXPECT_EQ(code->whole.shared_bytes, 16 + 16);
  // One turn of the loop over K: six instructions of its own, six of the inner one four times.
  EXPECT_EQ(code->product->instructions, 6 + 4 * 6);
  EXPECT_EQ(code->product->issued, 4 * 4);
  EXPECT_EQ(code->product->loads, 1);
  EXPECT_EQ(code->product->f32_flops, 4 * 6);
  EXPECT_EQ(code->product->shared_bytes, 16 + 4 * 16);
  EXPECT_EQ(code->turn.instructions, 6);
  EXPECT_TRUE(code->is_nested);
}

// NVK puts what follows a loop between its head and its way back.
constexpr const char* kNak = R"(block.u 0 L2 [] -> {
      ur1      = mov rZ                                            // delay=1
} -> [1]
block.u 1 L3 [0, 3] -> {
      up0      = isetp.ge.u32 ur1 0x40                             // delay=1
                 bra up0 L5                                        // delay=1
} -> [3, 2]
block.u 2 L4 [1] -> {
                 bra pT L6                                         // delay=1
} -> [3]
block.u 4 L5 [1] -> {
      r9       = ffma.ftz r1 r2 r3                                 // delay=1
                 st.global.a64.strong.gpu.b32 [r2..4] r9           // delay=1
                 exit                                              // delay=1
} -> []
block.u 3 L6 [2] -> {
      r4..8    = ld.global.a64.strong.gpu.b128 [r2..4], pT         // delay=1 wr:0
@!p0             st.shared.strong.cta.b128 [r5] r4..8              // delay=1
      r8..10   = hmma.m16n8k16.f32 r4..8 r6..8 r8..10              // delay=1
      r11      = ffma.ftz r1 r2 r11                                // delay=1
      ur1      = iadd3 ur1 0x10 rZ                                 // delay=1
                 bra pT L3                                         // delay=1
} -> [1]
)";

TEST(Survey, ListingOfNvk) {
  const auto code = read_code("NAK assembly", kNak);
  ASSERT_TRUE(code && code->product);
  EXPECT_EQ(code->whole.instructions, 13);
  // Without the block that leaves the loop.
  EXPECT_EQ(code->product->instructions, 9);
  EXPECT_EQ(code->product->issued, 9);
  EXPECT_EQ(code->product->f32_flops, 2);
  EXPECT_EQ(code->product->matrix_flops, 2 * 16 * 8 * 16);
  EXPECT_EQ(code->product->shared_bytes, 16);
  EXPECT_FALSE(code->is_nested);
  EXPECT_FALSE(read_code("NIR shader", kNak).has_value());
}

// A walk along a row, in whole words where they are so, and what a workgroup adds up in shared memory behind
// it.
constexpr const char* kWalk = R"(BB0:
	s_load_b128 s[8:11], s[4:5], 0x30                           ; f4080202 f8000030
BB1:
	s_cmp_lg_u32 s9, 0                                          ; bf070009
	s_cbranch_scc0 BB3                                          ; bfa10004
BB2:
	global_load_b64 v[0:1], v4, s[2:3]                          ; dc560000
	v_add_f32_e32 v2, v0, v1                                    ; 06040300
	s_branch BB4                                                ; bfa00004
BB3:
	global_load_b32 v0, v4, s[2:3]                              ; dc520000
	global_load_b32 v1, v4, s[2:3] offset:4                     ; dc520004
	v_add_f32_e32 v5, v6, v0                                    ; 06040300
	v_add_f32_e32 v5, v5, v6                                    ; 06040300
	v_add_f32_e32 v2, v0, v1                                    ; 06040300
BB4:
	v_add_f32_e32 v3, v3, v2                                    ; 06060503
	s_cmp_lt_i32 s2, s8                                         ; bf048002
	s_cbranch_scc1 BB1                                          ; bfa2fff0
BB5:
	ds_load_b32 v7, v8                                          ; d8d80000
	v_add_f32_e32 v3, v3, v7                                    ; 06060f03
	v_add_f32_e32 v3, v3, v7                                    ; 06060f03
	v_add_f32_e32 v3, v3, v7                                    ; 06060f03
	s_cmp_lt_i32 s12, s13                                       ; bf040d0c
	s_cbranch_scc1 BB5                                          ; bfa2fff0
BB6:
	global_store_b32 v14, v3, s[2:3]                            ; dc6a0000
	s_endpgm                                                    ; bfb00000
)";

TEST(Survey, TheWayInWholeWordsIsTaken) {
  const auto code = read_code("Assembly", kWalk);
  ASSERT_TRUE(code.has_value());
  EXPECT_EQ(code->whole.accesses, 2);
  EXPECT_EQ(code->whole.issued, 2 + 3);
  EXPECT_EQ(code->walks.accesses, 1);
  EXPECT_EQ(code->walks.issued, 2);
  EXPECT_EQ(code->walks.instructions, 8);
}

TEST(Survey, ShapesOfMatrixInstructions) {
  const auto code =
      read_code("Assembly", "\tv_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7] ; cc400000\n");
  ASSERT_TRUE(code.has_value());
  EXPECT_EQ(code->whole.matrix_flops, 2 * 16 * 16 * 16);
  EXPECT_FALSE(code->product.has_value());
}

/// A card of round numbers.
constexpr Card kCard{.name = "card",
                     .title = "Card",
                     .bandwidth = 1e12,
                     .f32_flops = 1e13,
                     .matrix_flops = 1e14,
                     .units = 100,
                     .schedulers = 4,
                     .clock = 1e9,
                     .resident = 2048,
                     .matrices_block = false,
                     .shared_per_cycle = 128};

KernelReport kernel_of(const char* family) {
  KernelReport kernel;
  kernel.family = family;
  kernel.workgroup_size = 256;
  kernel.subgroup_size = 32;
  return kernel;
}

TEST(Survey, FullCardTakesWhatTheBoundsSay) {
  // 800 workgroups of 256: eight for each unit, all of which fit; 200,000 invocations keep 3.2 MB under way.
  const DispatchFacts dispatch{.workgroups = 800, .bytes = 5'000'000'000, .flops = 20'000'000'000};
  const TimeEstimate time = estimate_time(kCard, kernel_of("elementwise"), dispatch);
  EXPECT_DOUBLE_EQ(time.memory, 5e-3);
  EXPECT_DOUBLE_EQ(time.arithmetic, 2e-3);
  EXPECT_EQ(time.issue, 0);  // no listing
  EXPECT_DOUBLE_EQ(time.fixed, 1e-6);
  // Eight workgroups of a unit hide seven eighths of the shorter behind the longer.
  EXPECT_DOUBLE_EQ(time.seconds(), 5e-3 + 2e-3 / 8 + 1e-6);
  EXPECT_EQ(time.bound(), "memory");
}

TEST(Survey, FewWorkgroupsReachNeitherBandwidthNorRate) {
  // One workgroup: 256 * 16 bytes under way in 600 ns; one unit of a hundred.
  const DispatchFacts dispatch{.workgroups = 1, .bytes = 4096, .flops = 1'000'000, .barrier_before = true};
  const TimeEstimate time = estimate_time(kCard, kernel_of("row"), dispatch);
  EXPECT_NEAR(time.memory, 600e-9, 1e-15);
  EXPECT_NEAR(time.arithmetic, 1e6 / 1e11, 1e-15);
  EXPECT_DOUBLE_EQ(time.fixed, 3e-6);
  EXPECT_EQ(time.bound(), "arithmetic");
  EXPECT_NEAR(time.seconds(), 600e-9 + 1e-5 + 3e-6, 1e-15);  // nothing is hidden

  // 150 workgroups take two rounds of 100 units; each of one subgroup keeps one scheduler of four busy, or
  // two where two of them fit.
  KernelReport narrow = kernel_of("row");
  narrow.workgroup_size = 32;
  EXPECT_NEAR(estimate_time(kCard, narrow, {.workgroups = 150, .flops = 1'000'000}).arithmetic,
              1e6 / (1e13 * 0.75 * 0.5), 1e-15);
  narrow.statistics.resident_invocations = 32;
  EXPECT_NEAR(estimate_time(kCard, narrow, {.workgroups = 150, .flops = 1'000'000}).arithmetic,
              1e6 / (1e13 * 0.75 * 0.25), 1e-15);
}

TEST(Survey, WalksTakeTheirTurns) {
  KernelReport row = kernel_of("row");
  CodeStretch whole, walks;
  whole.issued = 500;
  walks.issued = 200;
  row.code = CodeFacts{.whole = whole, .turn = whole, .walks = walks};
  // 800 workgroups of 8 subgroups on 400 schedulers, each for three rows of 11 turns.
  const DispatchFacts dispatch{.workgroups = 800, .iterations = 1000, .rounds = 3, .turns = 11};
  EXPECT_NEAR(estimate_time(kCard, row, dispatch).issue, 800 * 8 * 3 * (500 + 10 * 200) / (400 * 1e9), 1e-12);
}

TEST(Survey, ProductsTakeWhatTheirLoopTakes) {
  KernelReport product = kernel_of("product");
  product.uses_matrices = true;
  CodeStretch turn;
  turn.instructions = turn.issued = 60;
  turn.matrix_flops = 4 * 4096;
  turn.shared_bytes = 64;
  turn.loads = 1;
  product.code = CodeFacts{.whole = turn, .turn = turn, .product = turn};
  // 2^40 flops are 2^26 turns of a subgroup.
  const DispatchFacts dispatch{.workgroups = 800, .bytes = 1000, .flops = std::int64_t{1} << 40};
  const double turns = 67108864;
  const TimeEstimate time = estimate_time(kCard, product, dispatch);
  EXPECT_NEAR(time.arithmetic, 1099511627776.0 / 1e14, 1e-9);
  EXPECT_NEAR(time.issue, turns * 60 / (400 * 1e9), 1e-9);
  EXPECT_NEAR(time.shared, turns * 64 * 32 / (100 * 128 * 1e9), 1e-9);
  EXPECT_EQ(time.bound(), "arithmetic");
  // Where matrix instructions keep the port from others, their time comes on top.
  Card amd = kCard;
  amd.matrices_block = true;
  EXPECT_NEAR(estimate_time(amd, product, dispatch).issue, time.issue + time.arithmetic, 1e-9);
}

TEST(Survey, CardsAgreeWithThemselves) {
  for (const Card& card : cards()) {
    SCOPED_TRACE(std::string(card.name));
    EXPECT_EQ(find_card(card.name), &card);
    // The rate of f32 is that of its schedulers: 32 multiply-adds a cycle, 64 where two are issued as one.
    const double lanes =
        card.f32_flops / 2 / (static_cast<double>(card.units * card.schedulers) * card.clock);
    EXPECT_NEAR(lanes, card.matrices_block ? 64 : 32, 1);
  }
  EXPECT_EQ(find_card("gtx1080"), nullptr);
}

}  // namespace
}  // namespace caldera
