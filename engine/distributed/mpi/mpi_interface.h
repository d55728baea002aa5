/* Declares what the program asks of MPI, in C: handles differ between implementations of MPI, so a small
 * library is compiled against the mpi.h of each, and the program opens the one that launched it when it runs.
 *
 * All of it is called by one thread, the one that called start() (MPI_THREAD_FUNNELED). Counts are in bytes
 * unless said otherwise and fit an int. Requests are numbers >= 0; -1 where the call failed, which error()
 * explains. Communicator 0 is of all ranks. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

enum { kCalderaMpiVersion = 1 };

/* Says where a process stands among all. Local ranks count the processes of one machine. */
typedef struct CalderaMpiPlace {
  int rank, size, local_rank, local_size;
} CalderaMpiPlace;

typedef enum CalderaMpiOp { kCalderaMpiSum, kCalderaMpiMax, kCalderaMpiMin } CalderaMpiOp;
typedef enum CalderaMpiType {
  kCalderaMpiU8,
  kCalderaMpiU32,
  kCalderaMpiI8,
  kCalderaMpiI16,
  kCalderaMpiI32,
  kCalderaMpiI64,
  kCalderaMpiF32,
  kCalderaMpiF64
} CalderaMpiType;

typedef struct CalderaMpi {
  int version;
  const char* (*name)(void);            /* the implementation, with its version */
  int (*start)(CalderaMpiPlace* place); /* 0, or -1 */
  void (*finish)(void);
  void (*end_all)(int code);  /* ends the processes of all ranks */
  const char* (*error)(void); /* of the last call that failed */
  /* Makes communicators of those ranks that give the same color, ordered by key. Returns a number for it, or
   * -1. */
  int (*split)(int comm, int color, int key, int* rank, int* size);
  int (*barrier)(int comm);
  int (*broadcast)(int comm, void* data, int bytes, int root);
  int (*gather_all)(int comm, const void* from, void* to, const int* counts, const int* places);
  int (*exchange_all)(int comm, const void* from, const int* counts, const int* places, void* to,
                      const int* to_counts, const int* to_places);
  int (*reduce_all)(int comm, const void* from, void* to, int elements, CalderaMpiType type, CalderaMpiOp op);
  int (*send)(int comm, const void* data, int bytes, int to, int tag);
  int (*receive)(int comm, void* data, int bytes, int from, int tag);
  int (*test)(int request);    /* 1: done, and the request is gone; 0: not yet; -1: failed */
  void (*cancel)(int request); /* of a receive */
} CalderaMpi;

typedef const CalderaMpi* (*CalderaMpiEntry)(void);

#ifdef __cplusplus
}
#endif
