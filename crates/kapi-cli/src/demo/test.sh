# The proof: every line must hold.
set -e
[ "$(sh add.sh 2 3)" = 5 ] || { echo "add 2 3 gives $(sh add.sh 2 3), not 5"; exit 1; }
[ "$(sh add.sh 40 2)" = 42 ] || { echo "add 40 2 gives $(sh add.sh 40 2), not 42"; exit 1; }
echo "all sums are right"
