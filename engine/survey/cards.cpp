#include "engine/survey/cards.h"

#include <algorithm>
#include <iterator>

namespace caldera {
namespace {

constexpr Card kCards[] = {
    // NVIDIA Ada GPU Architecture, whitepaper v2.02, appendix A: 1008 GB/s; 82.6 TFLOPS of FP32; 165.2 of
    // BF16 and of FP16 with FP32 accumulate; 128 SMs of four partitions, 2520 MHz; 48 warps an SM. 128 bytes
    // a cycle of shared memory: CUDA C++ Programming Guide, 32 banks of 4 bytes.
    {.name = "rtx4090",
     .title = "NVIDIA GeForce RTX 4090",
     .bandwidth = 1008e9,
     .f32_flops = 82.6e12,
     .matrix_flops = 165.2e12,
     .units = 128,
     .schedulers = 4,
     .clock = 2.52e9,
     .resident = 1536,
     .matrices_block = false,
     .shared_per_cycle = 128},
    // AMD, product page of the Radeon RX 7900 XTX: 960 GB/s; 61.4 TFLOPS of FP32, 122.8 of FP16 and of
    // FP16 and BF16 matrices; 96 compute units, 2500 MHz. AMD RDNA 3 ISA guide and "RDNA 3" (Hot Chips 2023):
    // two SIMDs a unit with 16 waves of up to 64 lanes each; matrix instructions run on the SIMD; 128 bytes a
    // cycle of LDS.
    {.name = "7900xtx",
     .title = "AMD Radeon RX 7900 XTX",
     .bandwidth = 960e9,
     .f32_flops = 61.4e12,
     .matrix_flops = 122.8e12,
     .units = 96,
     .schedulers = 2,
     .clock = 2.5e9,
     .resident = 2048,
     .matrices_block = true,
     .shared_per_cycle = 128},
    // AMD, product page of the Radeon RX 9070 XT: 640 GB/s; 48.7 TFLOPS of FP32; 195 of FP16 matrices; 64
    // compute units, 2970 MHz. AMD RDNA 4 ISA guide: SIMDs, waves and LDS as above.
    {.name = "9070xt",
     .title = "AMD Radeon RX 9070 XT",
     .bandwidth = 640e9,
     .f32_flops = 48.7e12,
     .matrix_flops = 195e12,
     .units = 64,
     .schedulers = 2,
     .clock = 2.97e9,
     .resident = 2048,
     .matrices_block = true,
     .shared_per_cycle = 128},
    // NVIDIA H100 Tensor Core GPU Architecture, whitepaper v1.04, table of the SXM5 module: 3352 GB/s; 66.9
    // TFLOPS of FP32; 989.4 of FP16 and BF16 matrices; 132 SMs of four partitions; 64 warps an SM. The clock
    // is what the rate of FP32 says: 66.9e12 / (132 * 128 * 2).
    {.name = "h100",
     .title = "NVIDIA H100 SXM5",
     .bandwidth = 3352e9,
     .f32_flops = 66.9e12,
     .matrix_flops = 989.4e12,
     .units = 132,
     .schedulers = 4,
     .clock = 1.98e9,
     .resident = 2048,
     .matrices_block = false,
     .shared_per_cycle = 128},
};

}  // namespace

std::span<const Card> cards() { return kCards; }

const Card* find_card(std::string_view name) {
  const auto* const found = std::ranges::find(kCards, name, &Card::name);
  return found != std::end(kCards) ? found : nullptr;
}

}  // namespace caldera
