# Runs attempts one after the other, each in a directory of its own, and says where each begins and ends.
for one in "$@"; do
  mkdir -p "$WORKSPACE/$one.d" && cd "$WORKSPACE/$one.d" || exit 90
  echo "=== begins $one"
  case $one in
    *.py) timeout -k 1 100 /usr/bin/python3 -I "$ATTEMPTS/$one" 2>&1 ;;
    *.sh) timeout -k 1 100 /bin/bash "$ATTEMPTS/$one" 2>&1 ;;
  esac
  echo "=== ended $?"
done
