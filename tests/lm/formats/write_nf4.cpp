// Writes the model of a folder as bitsandbytes saves it in NF4: tests/cli/finetune_quantized.sh trains on it.
#include <cstdio>
#include <exception>

#include "tests/lm/formats/quantized_files.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: caldera_write_nf4 FOLDER OUT\n", stderr);
    return 2;
  }
  try {
    caldera::testing::write_nf4_folder(argv[1], argv[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
