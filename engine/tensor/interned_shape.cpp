#include "engine/tensor/interned_shape.h"

#include <array>
#include <mutex>
#include <unordered_set>

namespace caldera {
namespace {

struct HashOfShape {
  std::size_t operator()(const Shape& shape) const {
    auto hash = static_cast<std::uint64_t>(shape.rank());
    for (const std::int64_t extent : shape)
      hash = (hash ^ static_cast<std::uint64_t>(extent)) * 0x9e3779b97f4a7c15ULL;
    return hash ^ hash >> 32;
  }
};

struct Table {
  std::mutex mutex;
  std::unordered_set<Shape, HashOfShape> shapes;  // whose elements stay where they are
};

Table& table() {
  static auto* instance = new Table;  // outlives every static tensor
  return *instance;
}

/// Null where the table is full.
const Shape* find_or_insert(const Shape& shape) {
  Table& all = table();
  const std::scoped_lock lock(all.mutex);
  const auto found = all.shapes.find(shape);
  if (found != all.shapes.end()) return &*found;
  if (all.shapes.size() >= kMostInternedShapes) return nullptr;
  return &*all.shapes.insert(shape).first;
}

/// The shapes that this thread has asked for lately, by their hash.
constexpr std::size_t kRecent = 128;
constinit thread_local std::array<const Shape*, kRecent> recent{};

}  // namespace

InternedShape::InternedShape(const Shape& shape) {
  const Shape*& known = recent[HashOfShape()(shape) % kRecent];
  if (known == nullptr || *known != shape) {
    const Shape* interned = find_or_insert(shape);
    if (interned == nullptr) {
      bits_ = own(shape);
      return;
    }
    known = interned;
  }
  bits_ = reinterpret_cast<std::uintptr_t>(known);
}

std::uintptr_t InternedShape::own(const Shape& shape) {
  return reinterpret_cast<std::uintptr_t>(new Shape(shape)) | kOwn;
}

std::uintptr_t InternedShape::scalar_bits() {
  static const std::uintptr_t kBits = InternedShape(Shape{}).bits_;
  return kBits;
}

std::size_t interned_shapes() {
  Table& all = table();
  const std::scoped_lock lock(all.mutex);
  return all.shapes.size();
}

}  // namespace caldera
