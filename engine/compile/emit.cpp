// Emission: regions become steps over buffers.
#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "engine/compile/compile.h"
#include "engine/compile/region_kernel.h"
#include "engine/tensor/error.h"

namespace caldera {
namespace {

class Emitter {
 public:
  explicit Emitter(const Regions& regions) : regions_(regions), buffer_(regions.program().nodes.size(), -1) {
    const Program& program = regions.program();
    plan_.device = program.device;
    plan_.scalars = program.scalars;
    plan_.node_count = static_cast<std::int64_t>(program.nodes.size());
    plan_.input_count = static_cast<std::int32_t>(program.data.size());
    plan_.output_count = static_cast<std::int32_t>(program.outputs.size());
    for (std::uint32_t leaf : program.data) {
      buffer_[leaf] = add_buffer(BufferRole::input, program.nodes[leaf]);
    }
    for (std::uint32_t output : program.outputs) add_buffer(BufferRole::output, program.nodes[output]);
  }

  std::shared_ptr<Plan> run() {
    const Program& program = regions_.program();
    for (std::uint32_t i = 0; i < program.nodes.size(); ++i) {
      if (regions_.is_live(i) && regions_.region(i) == i) emit(i);
    }
    for (std::size_t k = 0; k < program.outputs.size(); ++k) {
      const Source source = regions_.source(program.outputs[k]);
      if (regions_.output_of(source.root) == static_cast<std::int32_t>(k)) continue;
      const Shape& shape = regions_.node(source.shape_of).shape;
      copy(source, shape, plan_.input_count + static_cast<std::int32_t>(k), dense_view(shape));
    }
    return std::make_shared<Plan>(std::move(plan_));
  }

 private:
  std::int32_t add_buffer(BufferRole role, const Program::Node& n) {
    const std::int64_t bytes = n.shape.numel() * static_cast<std::int64_t>(size_of(n.dtype));
    plan_.buffers.push_back({.role = role, .dtype = n.dtype, .bytes = bytes});
    return static_cast<std::int32_t>(plan_.buffers.size() - 1);
  }

  std::int32_t destination(std::uint32_t root) {
    const std::int32_t output = regions_.output_of(root);
    buffer_[root] =
        output >= 0 ? plan_.input_count + output : add_buffer(BufferRole::arena, regions_.node(root));
    return buffer_[root];
  }

  void emit(std::uint32_t i) {
    const Program::Node& n = regions_.node(i);
    switch (n.op->kind) {
      case OpClass::data:
      case OpClass::scalar:
      case OpClass::index:
        return;
      case OpClass::contract:
        return contract(i);
      case OpClass::gather:
        return gather(i);
      case OpClass::scatter_add:
        return scatter_add(i);
      case OpClass::pad:
        return pad(i);
      case OpClass::concatenate:
        return concatenate(i);
      default:
        break;
    }
    if (regions_.is_copy(i)) {
      // Written in the order of the source's extents, which is the order of the result's elements.
      const Source source = regions_.operands(i)[0];
      const Shape& shape = regions_.node(source.shape_of).shape;
      return copy(source, shape, destination(i), dense_view(shape));
    }
    region(i);
  }

  void region(std::uint32_t i) {
    const Program::Node& n = regions_.node(i);
    const Shape& space = iteration_shape(regions_, i);
    const std::int64_t reduced = n.op->kind == OpClass::reduce ? n.attributes[0] : 0;
    // The result keeps reduced axes with extent 1: its strides over the space are its own, and 0 along those.
    View out = dense_view(n.shape);
    for (int axis = 0; axis < space.rank(); ++axis) {
      if ((reduced >> axis & 1) != 0) out.strides[axis] = 0;
    }
    kernel_step(build_region_kernel(regions_, i), space, destination(i), out, reduced);
  }

  /// Writes `source` with extents `shape` to a buffer, through a view of it.
  void copy(const Source& source, const Shape& shape, std::int32_t buffer, const View& to) {
    kernel_step(build_copy_kernel(regions_, source), shape, buffer, to, 0);
  }

  void kernel_step(RegionKernel built, const Shape& space, std::int32_t buffer, const View& to,
                   std::int64_t reduced) {
    Step step;
    step.kind = StepKind::region;
    step.dtype = plan_.buffers[static_cast<std::size_t>(buffer)].dtype;
    step.scalars = std::move(built.scalars);
    for (const RegionKernel::Input& input : built.inputs) {
      step.operands.push_back({memory(input.root), input.view.offset, input.view.strides});
    }
    for (const View& index : built.indices) step.operands.push_back({-1, index.offset, index.strides});
    step.operands.push_back({buffer, to.offset, to.strides});
    step.dims = space;
    order_and_collapse(step, reduced);
    const bool writes_nothing = std::any_of(step.dims.begin(), step.dims.end() - step.reduce_rank,
                                            [](std::int64_t extent) { return extent == 0; });
    if (writes_nothing) return;
    auto& shared = kernels_[built.kernel.hash];
    if (!shared) shared = std::make_shared<const Kernel>(std::move(built.kernel));
    step.kernel = shared;
    push_in_stages(std::move(step));
  }

  /// A reduction over very many points becomes partial results over parts of it, then a reduction of those:
  /// no workgroup has to loop for longer than drivers allow, and all of a device takes part.
  void push_in_stages(Step step) {
    constexpr std::int64_t kLongest = std::int64_t{1} << 22;
    constexpr std::int64_t kPart = std::int64_t{1} << 16;
    const int kept = step.dims.rank() - step.reduce_rank;
    std::int64_t points = 1;
    for (int d = kept; d < step.dims.rank(); ++d) points *= step.dims[d];
    if (points <= kLongest || step.dims.rank() == kMaxRank) {
      plan_.steps.push_back(std::move(step));
      return;
    }
    // Several reduced dimensions: the outermost numbers the parts. One: it is cut, and what is left over is a
    // part too.
    const bool cut = step.reduce_rank == 1;
    const std::int64_t length = step.dims[kept];
    const std::int64_t parts = cut ? length / kPart : length;
    const std::int64_t rest = cut ? length - parts * kPart : 0;
    const std::int64_t columns = parts + (rest > 0 ? 1 : 0);
    Shape partial_shape(step.dims.span().first(static_cast<std::size_t>(kept)));
    partial_shape.push_back(columns);
    const auto bytes = partial_shape.numel() * static_cast<std::int64_t>(size_of(step.dtype));
    plan_.buffers.push_back({.role = BufferRole::arena, .dtype = step.dtype, .bytes = bytes});
    const auto partial = static_cast<std::int32_t>(plan_.buffers.size() - 1);
    const Dims partial_strides = partial_shape.strides();

    Step last = step;
    last.dims = partial_shape;
    last.reduce_rank = 1;
    last.kernel = reload_kernel(*step.kernel);
    last.scalars.clear();
    last.operands = {{partial, 0, partial_strides}, step.operands.back()};
    last.operands.back().strides =
        Dims(last.operands.back().strides.span().first(static_cast<std::size_t>(kept) + 1));

    Step remainder = step;
    if (cut) {
      remainder.dims[kept] = rest;
      for (Operand& operand : remainder.operands) operand.offset += operand.strides[kept] * parts * kPart;
      step.dims[kept] = kPart;
      step.dims.insert(kept, parts);
      for (Operand& operand : step.operands) operand.strides.insert(kept, operand.strides[kept] * kPart);
    } else {
      --step.reduce_rank;
    }
    write_partial(step, partial, 0, partial_strides);
    push_in_stages(std::move(step));
    if (rest > 0) {
      write_partial(remainder, partial, parts, partial_strides);
      push_in_stages(std::move(remainder));
    }
    push_in_stages(std::move(last));
  }

  /// Redirects the result of a reduction to a column of the partial results.
  static void write_partial(Step& step, std::int32_t partial, std::int64_t column, const Dims& strides) {
    Dims out = Dims::filled(step.dims.rank(), 0);
    const int kept = step.dims.rank() - step.reduce_rank;
    for (int d = 0; d < kept; ++d) out[d] = strides[d];
    step.operands.back() = {partial, column, out};
  }

  /// The kernel that goes on with a reduction from partial results in memory.
  std::shared_ptr<const Kernel> reload_kernel(const Kernel& of) {
    Kernel kernel;
    kernel.name = of.name + " partials";
    kernel.inputs = {of.outputs[0].type};
    kernel.code = {{.op = ScalarOp::load, .type = of.outputs[0].type}};
    kernel.outputs = {{0, of.outputs[0].type}};
    kernel.reduce = of.reduce;
    kernel.finish();
    auto& shared = kernels_[kernel.hash];
    if (!shared) shared = std::make_shared<const Kernel>(std::move(kernel));
    return shared;
  }

  /// Moves reduced dimensions inwards, drops extents of 1 and merges neighbours that every operand walks as
  /// one.
  static void order_and_collapse(Step& step, std::int64_t reduced) {
    const auto rank = step.dims.rank();
    std::vector<Dims> strides(step.operands.size());
    Shape dims;
    int kept = 0;
    const auto append = [&](int axis, int boundary) {
      if (step.dims[axis] == 1) return;
      const int last = dims.rank() - 1;
      bool merges = last >= boundary;
      for (std::size_t k = 0; merges && k < strides.size(); ++k) {
        merges = strides[k][last] == step.operands[k].strides[axis] * step.dims[axis];
      }
      if (merges) {
        dims[last] *= step.dims[axis];
      } else {
        dims.push_back(step.dims[axis]);
      }
      for (std::size_t k = 0; k < strides.size(); ++k) {
        if (merges)
          strides[k][last] = step.operands[k].strides[axis];
        else
          strides[k].push_back(step.operands[k].strides[axis]);
      }
    };
    for (int axis = 0; axis < rank; ++axis) {
      if ((reduced >> axis & 1) == 0) append(axis, 0);
    }
    kept = dims.rank();
    for (int axis = 0; axis < rank; ++axis) {
      if ((reduced >> axis & 1) != 0) append(axis, kept);
    }
    step.reduce_rank = static_cast<std::int8_t>(dims.rank() - kept);
    step.dims = dims;
    for (std::size_t k = 0; k < strides.size(); ++k) step.operands[k].strides = strides[k];
  }

  /// The buffer that holds a root.
  std::int32_t memory(std::uint32_t root) {
    if (buffer_[root] < 0) {
      throw PlanError(fmt::format("compile: '{}' of shape {} is read before it is computed",
                                  regions_.node(root).op->name, regions_.node(root).shape.to_string()));
    }
    return buffer_[root];
  }

  /// An operand in memory with its view. What has none (coordinates) is written out in the wanted shape.
  struct Placed {
    std::int32_t buffer;
    View view;
  };
  Placed placed(const Source& source) {
    if (!regions_.is_free(source.root)) return {memory(source.root), *source.view};
    return written_out(source);
  }
  Placed written_out(const Source& source) {
    const Program::Node& seen = regions_.node(source.shape_of);
    const Shape& shape = seen.shape;
    const std::int64_t bytes =
        shape.numel() * static_cast<std::int64_t>(size_of(regions_.node(source.root).dtype));
    plan_.buffers.push_back(
        {.role = BufferRole::arena, .dtype = regions_.node(source.root).dtype, .bytes = bytes});
    const auto buffer = static_cast<std::int32_t>(plan_.buffers.size() - 1);
    copy(source, shape, buffer, dense_view(shape));
    return {buffer, dense_view(shape)};
  }

  void push(Step step) {
    if (step.dims.numel() > 0 || step.kind == StepKind::contract) plan_.steps.push_back(std::move(step));
  }

  void contract(std::uint32_t i) {
    const Program::Node& n = regions_.node(i);
    const std::vector<Source> sources = regions_.operands(i);
    const Placed a = placed(sources[0]);
    const Placed b = placed(sources[1]);
    const int batch = n.shape.rank() - 2;
    Step step;
    step.kind = StepKind::contract;
    step.dtype = n.dtype;
    step.dims = n.shape;
    step.dims.push_back(regions_.node(sources[0].shape_of).shape.back());
    step.segments = {{.k = step.dims.back()}};
    const View c = dense_view(n.shape);
    Dims sa = a.view.strides;
    sa.insert(batch + 1, 0);  // M, (N), K
    Dims sb = b.view.strides;
    std::swap(sb[batch], sb[batch + 1]);  // K, N -> N, K
    sb.insert(batch, 0);                  // (M), N, K
    Dims sc = c.strides;
    sc.push_back(0);
    step.operands = {{a.buffer, a.view.offset, sa}, {b.buffer, b.view.offset, sb}, {destination(i), 0, sc}};
    collapse_batch(step, batch);
    if (n.shape.numel() > 0) push(std::move(step));
  }

  /// Drops batch extents of 1 and merges neighbours that all operands walk as one.
  static void collapse_batch(Step& step, int batch) {
    for (int axis = batch - 1; axis >= 0; --axis) {
      bool merges = axis + 1 < batch;
      for (const Operand& operand : step.operands) {
        merges = merges && operand.strides[axis] == operand.strides[axis + 1] * step.dims[axis + 1];
      }
      if (merges) step.dims[axis + 1] *= step.dims[axis];
      if (!merges && step.dims[axis] != 1) continue;
      step.dims.erase(axis);
      for (Operand& operand : step.operands) operand.strides.erase(axis);
      --batch;
    }
  }

  /// x as (outer, axis, inner) with one stride each, copied if no such view exists.
  Placed three_dimensional(const Source& source, int axis, Shape& extents) {
    const Shape& shape = regions_.node(source.shape_of).shape;
    extents = Shape{1, shape[axis], 1};
    for (int d = 0; d < axis; ++d) extents[0] *= shape[d];
    for (int d = axis + 1; d < shape.rank(); ++d) extents[2] *= shape[d];
    if (!regions_.is_free(source.root)) {
      if (const auto view = reshape_view(*source.view, shape, extents)) return {memory(source.root), *view};
    }
    return {written_out(source).buffer, dense_view(extents)};
  }

  /// The elements of an operand in row-major order as one strided run, copied if there is no such view.
  Placed one_dimensional(const Source& source) {
    const Shape& shape = regions_.node(source.shape_of).shape;
    const Shape flat{shape.numel()};
    if (!regions_.is_free(source.root)) {
      if (const auto view = reshape_view(*source.view, shape, flat)) return {memory(source.root), *view};
    }
    return {written_out(source).buffer, dense_view(flat)};
  }

  static Operand along(const Placed& p, int axis) {
    Dims strides = Dims::filled(3, 0);
    strides[axis] = p.view.strides[0];
    return {p.buffer, p.view.offset, strides};
  }

  void gather(std::uint32_t i) {
    const Program::Node& n = regions_.node(i);
    const std::vector<Source> sources = regions_.operands(i);
    Shape extents;
    const Placed x = three_dimensional(sources[0], static_cast<int>(n.attributes[0]), extents);
    const Placed idx = one_dimensional(sources[1]);
    Step step;
    step.kind = StepKind::gather;
    step.dtype = n.dtype;
    step.dims = Shape{extents[0], regions_.node(sources[1].shape_of).shape.numel(), extents[2]};
    step.axis_extent = extents[1];
    step.axis_stride = x.view.strides[1];
    const Dims across{x.view.strides[0], 0, x.view.strides[2]};
    step.operands = {
        {x.buffer, x.view.offset, across}, along(idx, 1), {destination(i), 0, step.dims.strides()}};
    push(std::move(step));
  }

  void scatter_add(std::uint32_t i) {
    const Program::Node& n = regions_.node(i);
    const std::vector<Source> sources = regions_.operands(i);
    const auto axis = static_cast<int>(n.attributes[0]);
    const std::int64_t count = regions_.node(sources[1].shape_of).shape.numel();
    Shape extents{1, n.shape[axis], 1};
    for (int d = 0; d < axis; ++d) extents[0] *= n.shape[d];
    for (int d = axis + 1; d < n.shape.rank(); ++d) extents[2] *= n.shape[d];
    const Shape update_extents{extents[0], count, extents[2]};
    const Placed idx = one_dimensional(sources[1]);
    const auto update_view =
        regions_.is_free(sources[2].root)
            ? std::nullopt
            : reshape_view(*sources[2].view, regions_.node(sources[2].shape_of).shape, update_extents);
    const Placed u = update_view ? Placed{memory(sources[2].root), *update_view}
                                 : Placed{written_out(sources[2]).buffer, dense_view(update_extents)};
    const std::int32_t out = destination(i);
    copy(sources[0], n.shape, out, dense_view(n.shape));
    Step step;
    step.kind = StepKind::scatter_add;
    step.dtype = n.dtype;
    step.dims = update_extents;
    step.axis_extent = extents[1];
    step.axis_stride = extents[2];
    step.operands = {{u.buffer, u.view.offset, u.view.strides},
                     along(idx, 1),
                     {out, 0, Dims{extents[1] * extents[2], 0, 1}}};
    push(std::move(step));
  }

  void pad(std::uint32_t i) {
    const Program::Node& n = regions_.node(i);
    const std::vector<Source> sources = regions_.operands(i);
    const std::int32_t out = destination(i);
    const View whole = dense_view(n.shape);
    const View nowhere{0, Dims::filled(n.shape.rank(), 0)};
    copy({sources[1].root, sources[1].shape_of, &nowhere}, n.shape, out, whole);
    const Shape& inner = regions_.node(sources[0].shape_of).shape;
    View window = whole;
    for (int d = 0; d < inner.rank(); ++d) {
      const auto low = static_cast<std::size_t>(d);
      const auto interior = 2 * static_cast<std::size_t>(inner.rank()) + static_cast<std::size_t>(d);
      window.offset += n.attributes[low] * whole.strides[d];
      window.strides[d] = whole.strides[d] * (n.attributes[interior] + 1);
    }
    copy(sources[0], inner, out, window);
  }

  void concatenate(std::uint32_t i) {
    const Program::Node& n = regions_.node(i);
    const auto axis = static_cast<int>(n.attributes[0]);
    const std::int32_t out = destination(i);
    View window = dense_view(n.shape);
    for (const Source& source : regions_.operands(i)) {
      const Shape& part = regions_.node(source.shape_of).shape;
      copy(source, part, out, window);
      window.offset += part[axis] * window.strides[axis];
    }
  }

  const Regions& regions_;
  Plan plan_;
  std::vector<std::int32_t> buffer_;  // of each root, -1 while it has none
  std::unordered_map<Hash128, std::shared_ptr<const Kernel>> kernels_;
};

}  // namespace

std::shared_ptr<const Plan> compile(const Program& program, const CompileOptions& options) {
  const Regions regions(program, options);
  const std::shared_ptr<Plan> plan = Emitter(regions).run();
  plan_memory(*plan);
  plan_barriers(*plan);
  return plan;
}

}  // namespace caldera
