// The library libcaldera_mpi_NAME.so: mpi_interface.h in terms of one implementation of MPI.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "engine/distributed/mpi/mpi_interface.h"

namespace {

std::vector<MPI_Comm> comms;
std::vector<MPI_Request> requests;
std::vector<int> free_requests;
std::string last_error;

MPI_Comm comm_of(int comm) { return comms[static_cast<std::size_t>(comm)]; }
MPI_Request& request_of(int request) { return requests[static_cast<std::size_t>(request)]; }

bool is_good(int code) {
  if (code == MPI_SUCCESS) return true;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  last_error.assign(text.data(), static_cast<std::size_t>(length));
  return false;
}

int free_request() {
  if (free_requests.empty()) {
    requests.push_back(MPI_REQUEST_NULL);
    return static_cast<int>(requests.size()) - 1;
  }
  const int request = free_requests.back();
  free_requests.pop_back();
  return request;
}

/// The request that `begin` fills, or -1.
template <class F>
int begun(const F& begin) {
  const int request = free_request();
  if (is_good(begin(&request_of(request)))) return request;
  request_of(request) = MPI_REQUEST_NULL;
  free_requests.push_back(request);
  return -1;
}

const char* name() {
  static const std::string kText = [] {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> version{};
    int length = 0;
    MPI_Get_library_version(version.data(), &length);
    std::string all(version.data(), static_cast<std::size_t>(length));
    all.resize(std::min(all.size(), all.find_first_of(",\n")));
    // "MPICH Version:\t4.0.2"
    if (const std::size_t at = all.find(" Version:\t"); at != std::string::npos) all.replace(at, 10, " ");
    return all;
  }();
  return kText.c_str();
}

int start(CalderaMpiPlace* place) {
  int provided = 0;
  if (!is_good(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided))) return -1;
  if (provided < MPI_THREAD_FUNNELED) {
    last_error = "this MPI was built without threads";
    return -1;
  }
  MPI_Comm all = MPI_COMM_NULL, local = MPI_COMM_NULL;
  // Errors of requests are those of the world: it would end the process before anybody could say why.
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_dup(MPI_COMM_WORLD, &all);
  MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
  comms.push_back(all);
  MPI_Comm_rank(all, &place->rank);
  MPI_Comm_size(all, &place->size);
  MPI_Comm_split_type(all, MPI_COMM_TYPE_SHARED, place->rank, MPI_INFO_NULL, &local);
  MPI_Comm_rank(local, &place->local_rank);
  MPI_Comm_size(local, &place->local_size);
  MPI_Comm_free(&local);
  return 0;
}

void finish() { MPI_Finalize(); }

void end_all(int code) { MPI_Abort(MPI_COMM_WORLD, code); }

const char* error() { return last_error.c_str(); }

int split(int comm, int color, int key, int* rank, int* size) {
  MPI_Comm made = MPI_COMM_NULL;
  if (!is_good(MPI_Comm_split(comm_of(comm), color, key, &made))) return -1;
  MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
  MPI_Comm_rank(made, rank);
  MPI_Comm_size(made, size);
  comms.push_back(made);
  return static_cast<int>(comms.size()) - 1;
}

int barrier(int comm) {
  return begun([&](MPI_Request* request) { return MPI_Ibarrier(comm_of(comm), request); });
}

int broadcast(int comm, void* data, int bytes, int root) {
  return begun(
      [&](MPI_Request* request) { return MPI_Ibcast(data, bytes, MPI_BYTE, root, comm_of(comm), request); });
}

int gather_all(int comm, const void* from, void* to, const int* counts, const int* places) {
  int rank = 0;
  MPI_Comm_rank(comm_of(comm), &rank);
  return begun([&](MPI_Request* request) {
    return MPI_Iallgatherv(from, counts[rank], MPI_BYTE, to, counts, places, MPI_BYTE, comm_of(comm),
                           request);
  });
}

int exchange_all(int comm, const void* from, const int* counts, const int* places, void* to,
                 const int* to_counts, const int* to_places) {
  return begun([&](MPI_Request* request) {
    return MPI_Ialltoallv(from, counts, places, MPI_BYTE, to, to_counts, to_places, MPI_BYTE, comm_of(comm),
                          request);
  });
}

MPI_Datatype type_of(CalderaMpiType type) {
  switch (type) {
    case kCalderaMpiU8:
      return MPI_UINT8_T;
    case kCalderaMpiU32:
      return MPI_UINT32_T;
    case kCalderaMpiI8:
      return MPI_INT8_T;
    case kCalderaMpiI16:
      return MPI_INT16_T;
    case kCalderaMpiI32:
      return MPI_INT32_T;
    case kCalderaMpiI64:
      return MPI_INT64_T;
    case kCalderaMpiF32:
      return MPI_FLOAT;
    case kCalderaMpiF64:
      break;
  }
  return MPI_DOUBLE;
}

int reduce_all(int comm, const void* from, void* to, int elements, CalderaMpiType type, CalderaMpiOp op) {
  const MPI_Op of = op == kCalderaMpiSum ? MPI_SUM : op == kCalderaMpiMax ? MPI_MAX : MPI_MIN;
  return begun([&](MPI_Request* request) {
    return MPI_Iallreduce(from, to, elements, type_of(type), of, comm_of(comm), request);
  });
}

int send(int comm, const void* data, int bytes, int to, int tag) {
  return begun([&](MPI_Request* request) {
    return MPI_Isend(data, bytes, MPI_BYTE, to, tag, comm_of(comm), request);
  });
}

int receive(int comm, void* data, int bytes, int from, int tag) {
  return begun([&](MPI_Request* request) {
    return MPI_Irecv(data, bytes, MPI_BYTE, from, tag, comm_of(comm), request);
  });
}

int test(int request) {
  int done = 0;
  const bool good = is_good(MPI_Test(&request_of(request), &done, MPI_STATUS_IGNORE));
  if (good && done == 0) return 0;
  request_of(request) = MPI_REQUEST_NULL;
  free_requests.push_back(request);
  return good ? 1 : -1;
}

void cancel(int request) {
  MPI_Cancel(&request_of(request));
  MPI_Request_free(&request_of(request));
  free_requests.push_back(request);
}

const CalderaMpi kMpi{
    kCalderaMpiVersion, name,       start,        finish,     end_all, error,   split, barrier,
    broadcast,          gather_all, exchange_all, reduce_all, send,    receive, test,  cancel};

}  // namespace

extern "C" __attribute__((visibility("default"))) const CalderaMpi* caldera_mpi(void) { return &kMpi; }
