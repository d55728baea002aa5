// Counted: objects that count their owners, and the pointer of an owner. Half the size of a std::shared_ptr:
// it has to fit into a node.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace caldera {

template <class T>
class CountedPtr;

/// Base of a class T whose objects are owned by CountedPtr<T>s, from any number of threads.
template <class T>
class Counted {
 public:
  Counted() = default;
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  friend class CountedPtr<T>;
  mutable std::atomic<std::uint32_t> owners_{1};
};

template <class T>
class CountedPtr {
 public:
  CountedPtr() = default;
  /// Takes over the first owner's place of a new object.
  explicit CountedPtr(T* fresh) : object_(fresh) {}
  /// One more owner of an object that has some.
  static CountedPtr share(T* object) {
    CountedPtr owner(object);
    owner.owners().fetch_add(1, std::memory_order_relaxed);
    return owner;
  }
  CountedPtr(const CountedPtr& other) : object_(other.object_) {
    if (object_ != nullptr) owners().fetch_add(1, std::memory_order_relaxed);
  }
  CountedPtr(CountedPtr&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  CountedPtr& operator=(CountedPtr other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~CountedPtr() {
    if (object_ != nullptr && owners().fetch_sub(1, std::memory_order_acq_rel) == 1) delete object_;
  }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  friend bool operator==(const CountedPtr& a, const CountedPtr& b) = default;

 private:
  std::atomic<std::uint32_t>& owners() const { return static_cast<const Counted<T>*>(object_)->owners_; }

  T* object_ = nullptr;
};

}  // namespace caldera
