#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# bench_mpi_hosts.sh SOURCE: programs of MPI run between two hosts, which are network namespaces
# here. BUSBAR is the executable. Skipped without root, `ip` or an MPI.
set -u
: "${BUSBAR:?set it to the busbar executable}"
failed=0 ran=0

. "$1/scripts/two-hosts.sh"
# Before there is anything to remove: it says what is missing.
two_hosts 4500 || exit 77
trap remove_hosts EXIT
hosts=$host_a=10.77.0.1,$host_b=10.77.0.2

# measured OPTIONS...: all messages came unchanged
measured() {
	out=$(timeout 100 "$BUSBAR" bench mpi --messages 200 --between "$hosts" --json "$@" 2>&1) ||
		{ echo "failed: $*: $out"; failed=1; return; }
	echo "$out" | tr -d '\n ' | grep -q '"damaged":{[^}]*"value":0\.0' ||
		{ echo "failed: $*: messages were damaged: $out"; failed=1; }
}

for library in openmpi mpich; do
	command -v mpirun.$library >/dev/null &&
		[ -x "$(dirname "$BUSBAR")/examples/mpi/pingpong-$library" ] || continue
	ran=1
	measured --library $library
	measured --library $library --program collective --operation allreduce --processes 4
done
if command -v mpirun.openmpi >/dev/null; then
	measured --transport tcp
fi
# Nothing of one host is between two.
"$BUSBAR" bench mpi --transport shared --between "$hosts" 2>/dev/null
[ $? -eq 2 ] || { echo "failed: shared memory between two hosts was not refused"; failed=1; }
"$BUSBAR" bench mpi --between 'a;b=10.0.0.1,c=10.0.0.2' 2>/dev/null
[ $? -eq 2 ] || { echo "failed: a name for the shell was not refused"; failed=1; }
[ "$ran" -eq 1 ] || exit 77
exit "$failed"
