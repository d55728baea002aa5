# Sourced by tests that run programs under mpirun, with $implementation set: openmpi or mpich.
# shellcheck shell=sh
# Defines ranks COUNT PROGRAM ...; and where cli.sh was not sourced, $work and fail. Exits 77 without that implementation.
: "${implementation:?set it first}"
command -v "mpirun.$implementation" >/dev/null 2>&1 || {
  echo "skipped: mpirun.$implementation is not installed"
  exit 77
}
if [ -z "${work:-}" ]; then
  work=$(mktemp -d "${TMPDIR:-/tmp}/caldera_mpi.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  fail() {
    echo "FAILED: $*" >&2
    exit 1
  }
fi
# One thread a rank: ranks are processes that share the cores.
export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive GOMP_SPINCOUNT=1000
# Idle ranks yield the core, and Open MPI neither binds them nor minds root.
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

ranks() {
  ranks_count=$1
  shift
  case $implementation in
    openmpi)
      timeout 300 mpirun.openmpi --oversubscribe --bind-to none -n "$ranks_count" "$@" </dev/null
      ;;
    *) timeout 300 mpirun.mpich -n "$ranks_count" "$@" </dev/null ;;
  esac
}
