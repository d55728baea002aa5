// The ways in which folders quantise. Private to lm/formats/.
#pragma once

#include "lm/formats/folders/folder_reader.h"

namespace caldera::detail {

// The schemes. Each makes weights of the tensors that are its own, and leaves the others alone. `options` is
// the object quantization_config (of MLX: quantization). They throw FileError for what they do not support.
void read_bitsandbytes(FolderReader& reader, const JsonFields& options);
void read_mlx(FolderReader& reader, const JsonFields& options);
void read_gptq(FolderReader& reader, const JsonFields& options);
void read_awq(FolderReader& reader, const JsonFields& options);
void read_fp8(FolderReader& reader, const JsonFields& options);
void read_mxfp4(FolderReader& reader, const JsonFields& options);

}  // namespace caldera::detail
