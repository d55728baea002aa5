# The files of examples/deploy: systemd takes the unit, and the image installs what the program is linked with.
. tests/support/cli.sh
deploy=examples/deploy
checked=0

if command -v systemd-analyze >/dev/null; then
  sed "s|/usr/local/bin/caldera|$(realpath "$CALDERA_BIN")|" "$deploy/caldera.service" >"$work/caldera.service"
  grep -q "$(realpath "$CALDERA_BIN")" "$work/caldera.service" || fail "the unit starts another program"
  systemd-analyze verify "$work/caldera.service" >"$work/said" 2>&1 || fail "$(cat "$work/said")"
  [ ! -s "$work/said" ] || fail "systemd says: $(cat "$work/said")"
  checked=1
fi

# Its flags are the program's.
"$CALDERA_BIN" serve --help >"$work/help"
sed -n 's/^ExecStart=[^ ]* serve //p; s/^ENTRYPOINT//p; s/^CMD//p' "$deploy"/* | grep -o -e '--[a-z-]*' >"$work/flags"
while read -r flag; do
  grep -q -e "^  $flag " "$work/help" || fail "serve has no $flag"
done <"$work/flags"

# (Another distribution names packages otherwise.)
if grep -q 'VERSION_ID="12"' /etc/os-release 2>/dev/null && command -v readelf >/dev/null && command -v dpkg >/dev/null; then
  grep -v '^#' "$deploy/Containerfile" | tr ' ' '\n' >"$work/packages"
  readelf -d "$CALDERA_BIN" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' >"$work/needed"
  [ -s "$work/needed" ] || fail "the program needs no library"
  while read -r library; do
    # /lib and /usr/lib are one folder; which of the two a package names differs.
    path=$(ldd "$CALDERA_BIN" | awk -v name="$library" '$1 == name { print $3 }')
    [ -n "$path" ] || continue # the loader
    package=$(dpkg -S "*${path#/usr}" 2>/dev/null | sed -n 's/:.*//p' | head -n 1)
    case $package in
    '' | libc6 | libstdc++6 | libgcc-s1 | zlib1g | *-dev) continue ;; # in every image, or a library that somebody built
    libasan* | libubsan* | libtsan*) continue ;;
    esac
    grep -qx "$package" "$work/packages" || fail "the image has no $package, which the program needs for $library"
  done <"$work/needed"
  checked=1
fi
[ "$checked" = 1 ] || { echo "skipped: neither systemd-analyze nor Debian 12"; exit 77; }
