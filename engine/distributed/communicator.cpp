#include "engine/distributed/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/base/error.h"
#include "engine/tensor/dispatch.h"

namespace caldera::distributed {
namespace {

constexpr int kMessageTag = 2;
constexpr int kHeaderTag = 3;
/// Bytes of one rank that go in one message: counts of MPI are of 32 bits, and buffers stay small.
constexpr std::int64_t kPieceBytes = std::int64_t{16} << 20;
/// Those of each of `size` ranks where one message has a part of all: whole elements of any type.
constexpr std::int64_t share_of_piece(int size) { return kPieceBytes / size / 16 * 16 + 16; }
/// Bytes of a rank up to which each sends all it has to all: one message in place of two.
constexpr std::int64_t kSmallBytes = std::int64_t{16} << 10;

std::size_t count(std::int64_t n) { return static_cast<std::size_t>(n); }

/// Counts and places of parts one behind the other, in bytes.
struct Parts {
  std::vector<int> counts, places;

  void add(std::int64_t bytes) {
    places.push_back(places.empty() ? 0 : places.back() + counts.back());
    counts.push_back(static_cast<int>(bytes));
  }
  static Parts equal(int size, std::int64_t bytes) {
    Parts parts;
    for (int r = 0; r < size; ++r) parts.add(bytes);
    return parts;
  }
};

const char* name_of(Combine combine) {
  return combine == Combine::sum ? "all_sum" : combine == Combine::max ? "all_max" : "all_min";
}

/// Combines elements [0, elements) of all ranks by the fixed tree.
void reduce_piece(MessageRun& run, Combine combine, DType type, std::byte* data, std::int64_t elements) {
  const CalderaMpi& mpi = run.mpi();
  const int size = run.ranks().size, rank = run.ranks().rank, id = run.ranks().id;
  const auto bytes = static_cast<std::int64_t>(size_of(type));
  if (elements * bytes <= kSmallBytes) {
    const Parts parts = Parts::equal(size, elements * bytes);
    std::byte* const all = run.memory(0, elements * bytes * size);
    run.wait(mpi.gather_all(id, data, all, parts.counts.data(), parts.places.data()));
    combine_rows(combine, type, all, size, elements);
    std::memcpy(data, all, count(elements * bytes));
    return;
  }
  Parts shares;
  for (int r = 0; r < size; ++r) shares.add((elements * (r + 1) / size - elements * r / size) * bytes);
  const std::int64_t own = shares.counts[count(rank)];
  const Parts from = Parts::equal(size, own);
  std::byte* const rows = run.memory(0, own * size);
  run.wait(mpi.exchange_all(id, data, shares.counts.data(), shares.places.data(), rows, from.counts.data(),
                            from.places.data()));
  combine_rows(combine, type, rows, size, own / bytes);
  run.wait(mpi.gather_all(id, rows, data, shares.counts.data(), shares.places.data()));
}

/// The type of MPI for an element; nothing for those that it lacks.
int mpi_type_of(DType type) {
  switch (type) {
    case DType::boolean:
    case DType::u8:
      return kCalderaMpiU8;
    case DType::u32:
      return kCalderaMpiU32;
    case DType::i8:
      return kCalderaMpiI8;
    case DType::i16:
      return kCalderaMpiI16;
    case DType::i32:
      return kCalderaMpiI32;
    case DType::i64:
      return kCalderaMpiI64;
    case DType::f32:
      return kCalderaMpiF32;
    case DType::f64:
      return kCalderaMpiF64;
    case DType::f16:
    case DType::bf16:
      break;
  }
  return -1;
}

/// By MPI's collective; floats of 16 bits as f32.
void reduce_piece_fast(MessageRun& run, Combine combine, DType type, std::byte* data, std::int64_t elements) {
  const auto op = static_cast<CalderaMpiOp>(combine);
  const auto reduce = [&](const void* from, void* to, int of) {
    run.wait(run.mpi().reduce_all(run.ranks().id, from, to, static_cast<int>(elements),
                                  static_cast<CalderaMpiType>(of), op));
  };
  if (const int of = mpi_type_of(type); of >= 0) {
    const auto bytes = elements * static_cast<std::int64_t>(size_of(type));
    std::byte* const own = run.memory(0, bytes);
    std::memcpy(own, data, count(bytes));
    return reduce(own, data, of);
  }
  const auto floats = [&](std::size_t which) {
    return std::span(reinterpret_cast<float*>(run.memory(which, elements * 4)), count(elements));
  };
  const std::span<float> own = floats(0), all = floats(1);
  dispatch<is_floating>(type, [&]<class T>() {
    const auto* typed = reinterpret_cast<const T*>(data);
    for (std::size_t i = 0; i < own.size(); ++i) own[i] = static_cast<float>(to_number(typed[i]));
  });
  reduce(own.data(), all.data(), kCalderaMpiF32);
  dispatch<is_floating>(type, [&]<class T>() {
    auto* typed = reinterpret_cast<T*>(data);
    for (std::size_t i = 0; i < all.size(); ++i) typed[i] = to_element<T>(all[i]);
  });
}

/// Calls piece(first, bytes) for pieces of `bytes` of which each has at most `most`.
template <class F>
void in_pieces(std::int64_t bytes, std::int64_t most, const F& piece) {
  for (std::int64_t first = 0; first < bytes; first += most) piece(first, std::min(most, bytes - first));
}

}  // namespace

double seconds_waited() { return static_cast<double>(Completion::nanoseconds_waited()) * 1e-9; }

Communicator::Communicator() : ranks_(std::make_shared<RankSet>()) {}

Communicator::Communicator(std::shared_ptr<MessageThread> thread, std::shared_ptr<RankSet> ranks)
    : thread_(std::move(thread)), ranks_(std::move(ranks)) {}

std::shared_ptr<Communicator> Communicator::split(int color, int key) const {
  if (thread_ == nullptr) return std::make_shared<Communicator>();
  return std::make_shared<Communicator>(thread_, thread_->split(*ranks_, color, key));
}

Communicator::Done Communicator::post(OperationName name, MessageThread::Work work) {
  return thread_->post(ranks_, std::move(name), std::move(work));
}

Communicator::Done Communicator::all_reduce(Combine combine, SumOrder order, DType type, void* data,
                                            std::int64_t elements) {
  return post(fmt::format("{} of {} {}", name_of(combine), elements, name(type)), [=](MessageRun& run) {
    const auto bytes = static_cast<std::int64_t>(size_of(type));
    in_pieces(elements * bytes, kPieceBytes, [&](std::int64_t first, std::int64_t piece) {
      std::byte* const at = static_cast<std::byte*>(data) + first;
      (order == SumOrder::fixed ? reduce_piece : reduce_piece_fast)(run, combine, type, at, piece / bytes);
    });
  });
}

Communicator::Done Communicator::reduce_scatter(DType type, const void* from, void* to,
                                                std::int64_t elements) {
  return post(fmt::format("reduce_scatter of {} {}", elements * size(), name(type)), [=](MessageRun& run) {
    const auto bytes = static_cast<std::int64_t>(size_of(type));
    const int size = run.ranks().size;
    in_pieces(elements * bytes, share_of_piece(size), [&](std::int64_t first, std::int64_t piece) {
      std::byte* const packed = run.memory(0, piece * size);
      std::byte* const rows = run.memory(1, piece * size);
      for (int r = 0; r < size; ++r)
        std::memcpy(packed + r * piece, static_cast<const std::byte*>(from) + r * elements * bytes + first,
                    count(piece));
      const Parts parts = Parts::equal(size, piece);
      run.wait(run.mpi().exchange_all(run.ranks().id, packed, parts.counts.data(), parts.places.data(), rows,
                                      parts.counts.data(), parts.places.data()));
      combine_rows(Combine::sum, type, rows, size, piece / bytes);
      std::memcpy(static_cast<std::byte*>(to) + first, rows, count(piece));
    });
  });
}

Communicator::Done Communicator::all_gather(const std::string& what, const void* from, void* to,
                                            std::int64_t bytes) {
  return post(what, [=](MessageRun& run) {
    const int size = run.ranks().size;
    in_pieces(bytes, share_of_piece(size), [&](std::int64_t first, std::int64_t piece) {
      const Parts parts = Parts::equal(size, piece);
      std::byte* const rows = run.memory(0, piece * size);
      run.wait(run.mpi().gather_all(run.ranks().id, static_cast<const std::byte*>(from) + first, rows,
                                    parts.counts.data(), parts.places.data()));
      for (int r = 0; r < size; ++r)
        std::memcpy(static_cast<std::byte*>(to) + r * bytes + first, rows + r * piece, count(piece));
    });
  });
}

Communicator::Done Communicator::broadcast(const std::string& what, void* data, std::int64_t bytes,
                                           int root) {
  return post(what, [=](MessageRun& run) {
    in_pieces(bytes, kPieceBytes, [&](std::int64_t first, std::int64_t piece) {
      run.wait(run.mpi().broadcast(run.ranks().id, static_cast<std::byte*>(data) + first,
                                   static_cast<int>(piece), root));
    });
  });
}

namespace {

/// What precedes a message between two ranks.
struct MessageHeader {
  std::int64_t bytes = 0;
  char what[112] = {};
};

}  // namespace

Communicator::Done Communicator::send(const std::string& what, const void* data, std::int64_t bytes, int to) {
  return thread_->post_pair("send of " + what, [=, mpi = &thread_->mpi(), id = id()] {
    auto header = std::make_shared<MessageHeader>();
    header->bytes = bytes;
    what.copy(header->what, sizeof header->what - 1);
    PairMessage message{.requests = {mpi->send(id, header.get(), sizeof *header, to, kHeaderTag)},
                        .check = [header] {}};
    in_pieces(bytes, kPieceBytes, [&](std::int64_t first, std::int64_t piece) {
      message.requests.push_back(mpi->send(id, static_cast<const std::byte*>(data) + first,
                                           static_cast<int>(piece), to, kMessageTag));
    });
    return message;
  });
}

Communicator::Done Communicator::receive(const std::string& what, void* data, std::int64_t bytes, int from) {
  return thread_->post_pair("recv of " + what, [=, mpi = &thread_->mpi(), id = id(), rank = rank()] {
    auto header = std::make_shared<MessageHeader>();
    PairMessage message{
        .requests = {}, .check = [=] {
          header->what[sizeof header->what - 1] = '\0';
          if (header->bytes != bytes || what != header->what)
            throw Error(fmt::format("ranks differ in what they run: rank {} receives {}, rank {} sends {}",
                                    rank, what, from, header->what));
        }};
    in_pieces(bytes, kPieceBytes, [&](std::int64_t first, std::int64_t piece) {
      message.requests.push_back(mpi->receive(id, static_cast<std::byte*>(data) + first,
                                              static_cast<int>(piece), from, kMessageTag));
    });
    message.requests.push_back(mpi->receive(id, header.get(), sizeof *header, from, kHeaderTag));
    return message;
  });
}

void Communicator::barrier() {
  if (size() == 1) return;
  post("barrier", [](MessageRun& run) { run.wait(run.mpi().barrier(run.ranks().id)); })->wait();
}

std::vector<std::vector<std::byte>> Communicator::gather(std::span<const std::byte> own) {
  if (size() == 1) return {std::vector(own.begin(), own.end())};
  std::vector<std::vector<std::byte>> all(count(size()));
  post("gather", [&](MessageRun& run) {
    const auto bytes = static_cast<std::int64_t>(own.size());
    std::byte* const given = run.memory(0, std::max<std::int64_t>(bytes, sizeof bytes));
    std::byte* const lengths_of_all = run.memory(1, std::int64_t{sizeof bytes} * size());
    const Parts lengths = Parts::equal(run.ranks().size, sizeof bytes);
    std::memcpy(given, &bytes, sizeof bytes);
    run.wait(run.mpi().gather_all(run.ranks().id, given, lengths_of_all, lengths.counts.data(),
                                  lengths.places.data()));
    std::vector<std::int64_t> sizes(count(size()));
    std::memcpy(sizes.data(), lengths_of_all, sizes.size() * sizeof bytes);
    Parts parts;
    std::int64_t total = 0;
    for (const std::int64_t length : sizes) {
      parts.add(length);
      total += length;
    }
    std::byte* const rows = run.memory(1, total);
    if (!own.empty()) std::memcpy(given, own.data(), own.size());
    run.wait(run.mpi().gather_all(run.ranks().id, given, rows, parts.counts.data(), parts.places.data()));
    for (std::size_t r = 0; r < all.size(); ++r)
      all[r].assign(rows + parts.places[r], rows + parts.places[r] + parts.counts[r]);
  })->wait();
  return all;
}

std::vector<std::vector<double>> Communicator::gather(std::span<const double> own) {
  std::vector<std::vector<double>> all;
  for (const std::vector<std::byte>& bytes : gather(std::as_bytes(own))) {
    all.emplace_back(bytes.size() / sizeof(double));
    if (!bytes.empty()) std::memcpy(all.back().data(), bytes.data(), bytes.size());
  }
  return all;
}

}  // namespace caldera::distributed
