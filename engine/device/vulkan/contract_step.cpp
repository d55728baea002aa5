// Contractions: merges batch dimensions, picks the shader or puts it together.
#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "engine/device/vulkan/embedded_shaders.h"
#include "engine/device/vulkan/encoder.h"
#include "engine/device/vulkan/kernel_arguments.h"
#include "engine/device/vulkan/shader_parts.h"
#include "engine/kernel/glsl_epilogue.h"
#include "engine/tensor/error.h"

namespace caldera::vulkan {
namespace {

// As in shaders/matmul.glsl and matmul_tile.glsl.
constexpr int kMaxBatchRank = 5;  // kMaxRank less M, N, K
constexpr int kBlock = 4;         // columns of a tile
constexpr int kRows = 8;
constexpr int kLanes = 64;

/// The iteration space after merging: batch extents, M and N, and each operand's strides along them. Views
/// are in the order of the step's operands. A view of A has K for columns, one of B for rows.
struct Problem {
  struct View {
    Dims batch;
    std::int64_t rows = 0, columns = 0;
    bool is_b = false;
  };
  Dims batch;
  std::int64_t m = 0, n = 0;
  std::vector<View> views;
  std::int64_t batches() const {
    std::int64_t product = 1;
    for (std::int64_t e : batch) product *= e;
    return product;
  }
};

Problem make_problem(const Step& step) {
  const int rank = step.dims.rank();
  const int m = rank - 3, n = rank - 2, k = rank - 1;
  const auto named = static_cast<std::size_t>(step.named_operands());
  Problem p;
  p.m = step.dims[m];
  p.n = step.dims[n];
  for (std::size_t i = 0; i < step.operands.size(); ++i) {
    const Dims& s = step.operands[i].strides;
    const bool is_a = i < named && i % 2 == 0;
    const bool is_b = i < named && !is_a;
    p.views.push_back({{}, is_b ? s[k] : s[m], is_a ? s[k] : s[n], is_b});
  }
  const auto all = [&](auto&& condition) {
    for (std::size_t i = 0; i < p.views.size(); ++i) {
      if (!condition(p.views[i], step.operands[i].strides)) return false;
    }
    return true;
  };
  for (int d = 0; d < m; ++d) {
    const std::int64_t extent = step.dims[d];
    if (extent == 1) continue;
    const bool joins = !p.batch.empty() && all([&](const Problem::View& view, const Dims& strides) {
      return view.batch.back() == strides[d] * extent;
    });
    const int last = p.batch.rank() - 1;
    if (joins)
      p.batch[last] *= extent;
    else
      p.batch.push_back(extent);
    for (std::size_t i = 0; i < p.views.size(); ++i) {
      const std::int64_t stride = step.operands[i].strides[d];
      if (joins)
        p.views[i].batch[last] = stride;
      else
        p.views[i].batch.push_back(stride);
    }
  }
  // One B for all of a batch dimension: its rows join M (a linear layer over batch and sequence).
  while (!p.batch.empty()) {
    const int last = p.batch.rank() - 1;
    const bool joins = all([&](const Problem::View& view, const Dims&) {
      return view.is_b ? view.batch[last] == 0 : p.m == 1 || view.batch[last] == p.m * view.rows;
    });
    if (!joins) break;
    for (Problem::View& view : p.views) {
      if (p.m == 1 && !view.is_b) view.rows = view.batch[last];
      view.batch.erase(last);
    }
    p.m *= p.batch[last];
    p.batch.erase(last);
  }
  return p;
}

/// What a shader is made for, besides the operands' layouts and the epilogue.
struct Form {
  DType type = DType::f32;
  std::int64_t rows = 1;  // of a tile
  std::size_t segments = 1;
  DType scale = DType::f32;
  bool scaled = false;
};

/// Names and definitions as in shaders/matmul_*.comp.
struct TypeText {
  DType type;
  const char* name;
  const char* definitions;
};
constexpr TypeText kTypes[] = {
    {DType::f32, "f32",
     "#define MEMORY float\n#define VECTOR vec4\n#define ALIGN 4\n"
     "#define MULTIPLY_ADD(x, y, z) fma(x, y, z)\n"},
    {DType::f64, "f64",
     "#define MEMORY double\n#define VECTOR dvec4\n#define ALIGN 8\n"
     "#define MULTIPLY_ADD(x, y, z) fma(x, y, z)\n"},
    {DType::i32, "i32",
     "#define MEMORY int\n#define VECTOR ivec4\n#define ALIGN 4\n"
     "#define MULTIPLY_ADD(x, y, z) ((x) * (y) + (z))\n"},
    {DType::i64, "i64",
     "#define MEMORY int64_t\n#define VECTOR i64vec4\n#define ALIGN 8\n"
     "#define MULTIPLY_ADD(x, y, z) ((x) * (y) + (z))\n"},
    {DType::u8, "u8",
     "#define MEMORY uint8_t\n#define VALUE uint\n#define VECTOR uvec4\n#define SMALL_MEMORY\n#define ALIGN "
     "1\n"
     "#define MULTIPLY_ADD(x, y, z) ((x) * (y) + (z))\n"},
};

const TypeText& type_text(const Context& context, DType type) {
  for (const TypeText& text : kTypes) {
    if (text.type == type && context.supports(type)) return text;
  }
  throw DTypeError(fmt::format("{} has no kernel on {}", name(type), context.device->physical().info.name));
}

/// A factor of a segment: its eight bytes of the table as a register, and those of 1.
struct ScaleText {
  DType type;
  const char* argument;
  std::int64_t one_low, one_high;
};
constexpr ScaleText kScales[] = {
    {DType::f32, "uintBitsToFloat((slot).x)", 0x3f800000, 0},
    {DType::f64, "packDouble2x32(slot)", 0, 0x3ff00000},
    {DType::i32, "int((slot).x)", 1, 0},
    {DType::i64, "packInt2x32(ivec2(slot))", 1, 0},
    {DType::u8, "((slot).x & 0xffu)", 1, 0},
};

const ScaleText& scale_text(DType type) {
  for (const ScaleText& text : kScales) {
    if (text.type == type) return text;
  }
  throw DTypeError(fmt::format("no factor of a contraction may be {}", name(type)));
}

std::string make_text(const Form& form, const TypeText& type, std::span<const std::int32_t> layouts,
                      const GlslEpilogue* epilogue, int batch_rank, const GlslOptions& options) {
  GlslNeeds needs;
  if (epilogue != nullptr) needs = epilogue->needs();
  needs.memory(form.type);
  if (form.scaled) needs.value(form.scale);
  std::string scale;
  if (form.scaled) {
    const std::string argument(scale_text(form.scale).argument);
    scale =
        fmt::format("#define SCALE(slot) {}\n", glsl_convert({argument, form.scale}, form.type, needs.calls));
  }

  std::string text;
  append_glsl_preamble(needs, options, text);
  append_glsl_functions(needs, text);
  text += type.definitions;
  text += scale;
  text += fmt::format("#define LANES {}\n#define ROWS {}\n#define SEGMENTS {}\n", kLanes, form.rows,
                      form.segments);
  text += fmt::format("#define A_LAYOUT {}\n#define B_LAYOUT {}\n", layouts[0], layouts[1]);
  if (epilogue != nullptr) {
    const BatchCoordinates batch = batch_coordinates(batch_rank);
    text += epilogue->function();
    text += fmt::format("#define KERNEL_SLOTS {}\n", one_line(epilogue->slot_members()));
    text += fmt::format("#define KERNEL_INTEGERS {}\n", one_line(epilogue->integer_members()));
    text += fmt::format("#define KERNEL_BEGIN {}\n", one_line(epilogue->load("args.")));
    text += fmt::format("#define KERNEL_BATCH(batch) {}\n", batch.declarations);
    text += fmt::format("#define KERNEL_STORE(p, row, column) epilogue({}, {}row, column);\n",
                        form.type == DType::u8 ? "(p) & 0xffu" : "p", batch.names);
  }
  return text + whole_shader_text("matmul_tile");
}

/// The extents that a view is over: batch, then rows and columns.
Dims view_extents(const Problem& p, std::int64_t rows, std::int64_t columns) {
  Dims extents = p.batch;
  extents.push_back(rows);
  extents.push_back(columns);
  return extents;
}

Dims view_strides(const Problem::View& v) {
  Dims strides = v.batch;
  strides.push_back(v.rows);
  strides.push_back(v.columns);
  return strides;
}

std::int64_t view_bias(const Dims& extents, const Problem::View& view, const Step& step) {
  const Dims strides = view_strides(view);
  std::int64_t reach = 0;
  for (int d = 0; d < extents.rank(); ++d)
    reach += std::abs(strides[d]) * std::max<std::int64_t>(extents[d] - 1, 0);
  TableWriter::check_fits(reach, step);
  return bias(extents, strides);
}

/// Writes one operand's View of shaders/matmul.glsl.
void write_view(TableWriter& table, const Step& step, const Problem::View& view, std::int64_t bias) {
  table.integer(bias, step);
  table.integer(view.rows, step);
  table.integer(view.columns, step);
  for (int d = 0; d < kMaxBatchRank; ++d) table.integer(d < view.batch.rank() ? view.batch[d] : 0, step);
}

/// The operands behind those of the segments.
KernelArguments epilogue_arguments(const Step& step, const Problem& p) {
  const auto named = static_cast<std::size_t>(step.named_operands());
  std::vector<KernelView> views;
  for (std::size_t i = named; i < step.operands.size(); ++i) {
    KernelView view;
    view.operand = &step.operands[i];
    view.is_index = view.operand->buffer < 0;
    view.strides = view_strides(p.views[i]);
    view.access = scalar_or_strided(view.strides);
    views.push_back(view);
  }
  return {step, view_extents(p, p.m, p.n), std::move(views)};
}

}  // namespace

void encode_contract(Encoder& encoder, const Step& step) {
  Context& context = encoder.context;
  const Problem p = make_problem(step);
  const std::int64_t batches = p.batches();
  if (batches * p.m * p.n == 0) return;
  const TypeText& type = type_text(context, step.dtype);

  // A row of C an invocation where there are few; otherwise a tile of several.
  Form form{.type = step.dtype, .rows = p.m < kBlock ? 1 : kRows, .segments = step.segments.size()};
  const std::int64_t tiles = ((p.m + form.rows - 1) / form.rows) * ((p.n + kBlock - 1) / kBlock) * batches;
  TableWriter::check_fits(tiles, step);
  const auto layout = [&](std::int64_t along_k, std::int64_t along_other, std::int64_t extent) {
    if (context.device->capabilities().scalar_loads && context.few_cores) return 0;
    if (along_k == 1) return 1;
    return along_other == 1 && extent >= kBlock ? 2 : 0;
  };
  std::int32_t layouts[2] = {};
  for (std::size_t s = 0; s < form.segments; ++s) {
    const Problem::View &a = p.views[2 * s], &b = p.views[2 * s + 1];
    const std::int32_t own[2] = {layout(a.columns, a.rows, form.rows == 1 ? 0 : p.m),
                                 layout(b.rows, b.columns, p.n)};
    // One text for all segments: where they differ, the loads that suit any.
    for (int i = 0; i < 2; ++i) layouts[i] = s == 0 || layouts[i] == own[i] ? own[i] : 0;
    if (step.segments[s].scale < 0) continue;
    const DType scale = encoder.plan.scalars[static_cast<std::size_t>(step.segments[s].scale)];
    if (form.scaled && scale != form.scale)
      throw DTypeError(fmt::format("factors of {} and {} in one contraction", name(form.scale), name(scale)));
    form.scaled = true;
    form.scale = scale;
  }

  TableWriter& table = encoder.table;
  const std::size_t named = 2 * form.segments;
  VkPipeline pipeline = VK_NULL_HANDLE;
  if (!step.kernel && form.segments == 1 && !form.scaled) {
    pipeline = context.pipelines.embedded(fmt::format("matmul_{}{}", form.rows == 1 ? "row_" : "", type.name),
                                          {layouts[0], layouts[1]});
  } else {
    Hash128 key;
    key.mix(fmt::format("matmul {} {} {} {} {} {} {}", type.name, form.rows, form.segments, form.scaled,
                        static_cast<int>(form.scale), layouts[0], layouts[1]));
    GlslEpilogue::Shape shape{.rank = p.batch.rank() + 2};
    if (step.kernel) {
      for (std::size_t i = named; i < p.views.size(); ++i)
        shape.access.push_back(scalar_or_strided(view_strides(p.views[i])));
      for (const Hash128& h : {step.kernel->hash, shape.hash()}) {
        key.mix(h.lo);
        key.mix(h.hi);
      }
    }
    pipeline = context.pipelines.generated(key, step.name(), false, [&] {
      if (!step.kernel) return make_text(form, type, layouts, nullptr, 0, context.glsl);
      const GlslEpilogue epilogue(*step.kernel, shape, "epilogue");
      return make_text(form, type, layouts, &epilogue, p.batch.rank(), context.glsl);
    });
  }

  std::vector<std::int64_t> biases;
  for (std::size_t i = 0; i < named; ++i) {
    const std::int64_t k = step.segments[i / 2].k;
    biases.push_back(
        view_bias(i % 2 == 0 ? view_extents(p, p.m, k) : view_extents(p, k, p.n), p.views[i], step));
  }
  // As shaders/matmul.glsl declares it.
  const std::uint32_t block = table.begin();
  for (std::size_t s = 0; s < form.segments; ++s) {
    table.address(step.operands[2 * s], biases[2 * s]);
    table.address(step.operands[2 * s + 1], biases[2 * s + 1]);
    if (step.segments[s].scale >= 0) {
      table.scalar(step.segments[s].scale);
    } else {
      table.integer(scale_text(form.scale).one_low, step);
      table.integer(scale_text(form.scale).one_high, step);
    }
  }
  if (step.kernel) {
    epilogue_arguments(step, p).write_slots(table, step.scalars);
  } else {
    biases.push_back(view_bias(view_extents(p, p.m, p.n), p.views[named], step));
    table.address(step.operands[named], biases[named]);
  }
  for (std::int64_t value : {batches, p.m, p.n, std::int64_t{p.batch.rank()}}) table.integer(value, step);
  for (int d = 0; d < kMaxBatchRank; ++d) table.integer(d < p.batch.rank() ? p.batch[d] : 1, step);
  for (const Segment& segment : step.segments) table.integer(segment.k, step);
  for (std::size_t i = 0; i < biases.size(); ++i) write_view(table, step, p.views[i], biases[i]);
  if (step.kernel) epilogue_arguments(step, p).write_integers(table);

  const std::uint32_t groups = encoder.groups(tiles, kLanes);
  const std::int64_t tiles_each = (tiles + groups * kLanes - 1) / (std::int64_t{groups} * kLanes);
  std::int64_t iterations = kRows + 3;
  for (const Segment& segment : step.segments)
    iterations += segment.k / 4 + segment.k % 4 + 2 * p.batch.rank() + 3;
  encoder.dispatch(step, pipeline, block, groups, tiles_each * iterations);
}

}  // namespace caldera::vulkan
