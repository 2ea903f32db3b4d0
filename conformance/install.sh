#!/usr/bin/env bash
# Installs the two released Mooncake clients (and, from the same packages, the two C++ masters).
#
#   install.sh [FOLDER]     default: $MOONCAKE_CLIENTS, else .cache/clients of the repository
#
# FOLDER/0.3.13 and FOLDER/0.3.14 become virtual environments; a stamp file makes a second run a no-op.
# 0.3.14 is published for CUDA 13 only. Over TCP it never needs a device, but its libraries name the CUDA runtime
# (a package of its own) and the CUDA driver, which a machine without a GPU lacks: a driver that finds no device is
# compiled here from the list of the symbols they import.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
clients=${1:-${MOONCAKE_CLIENTS:-$here/../.cache/clients}}
recipe=3 # raise it when this script changes what it installs
mkdir -p "$clients"
clients=$(cd "$clients" && pwd)

debian_packages() {
  local missing=() p
  for p in libibverbs1 ibverbs-providers librdmacm1 libnuma1 libcurl4 gcc libc6-dev binutils python3-venv; do
    dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing+=("$p")
  done
  # A Python with its own venv module (pyenv, a container image) does not need Debian's.
  if python3 -c 'import venv, ensurepip' 2>/dev/null; then missing=("${missing[@]/python3-venv/}"); fi
  missing=(${missing[@]}) # drops what the line above blanked
  [ ${#missing[@]} -eq 0 ] && return
  local as_root=()
  [ "$(id -u)" = 0 ] || as_root=(sudo)
  "${as_root[@]}" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

environment() { # environment VERSION PIP-ARGUMENTS...
  local dir=$clients/$1
  shift
  rm -rf "$dir"
  python3 -m venv "$dir"
  "$dir/bin/python" -m pip -q --disable-pip-version-check install "$@"
}

site_of() { "$clients/$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }

driver_without_device() { # driver_without_device SITE TARGET: writes TARGET/libcuda.so.1
  local site=$1 target=$2 symbol
  mkdir -p "$target"
  {
    # Asked for by name in error paths; everything else reports "no device" (100).
    echo 'int cuGetErrorName(int code, const char **text) { *text = "CUDA_ERROR_NO_DEVICE"; return 0; }'
    echo 'int cuGetErrorString(int code, const char **text) { *text = "no CUDA device"; return 0; }'
    nm -D --undefined-only "$site"/mooncake/*.so "$site"/mooncake/mooncake_client "$site"/mooncake/mooncake_master 2>/dev/null |
      awk '$1 == "U" && $2 ~ /^cu[A-Z][A-Za-z0-9_]*$/ { print $2 }' | sort -u |
      while read -r symbol; do
        case $symbol in cuGetErrorName | cuGetErrorString) ;; *) echo "int $symbol(void) { return 100; }" ;; esac
      done
  } >"$target/driver.c"
  grep -q 'cuGetProcAddress_v2' "$target/driver.c" || echo 'int cuGetProcAddress_v2(void) { return 100; }' >>"$target/driver.c"
  gcc -shared -fPIC -w -Wl,-soname,libcuda.so.1 -o "$target/libcuda.so.1" "$target/driver.c"
}

# Over RDMA 0.3.14 also names Mellanox's own interface, whose library accepts none but its own libibverbs. Where another one
# stands in for that (verbs.sh), this one stands in for Mellanox's: every call fails as on another maker's adapter.
mlx5_without_device() { # mlx5_without_device SITE TARGET: writes TARGET/libmlx5.so.1
  local site=$1 target=$2 symbols version before=
  mkdir -p "$target"
  symbols=$(nm -D --undefined-only "$site"/mooncake/*.so 2>/dev/null | grep -oE 'mlx5dv_[a-z0-9_]+@MLX5_[0-9.]+' | sort -u)
  sed -E 's/(.*)@.*/long \1(void) { return FAILS; }/; /(alloc_uar|create|_reg)\(/ s/FAILS/0/; s/FAILS/95/' <<<"$symbols" >"$target/mlx5.c" # no pointer, or EOPNOTSUPP
  for version in $(sed 's/.*@//' <<<"$symbols" | sort -uV); do
    echo "$version { global: $(grep "@$version\$" <<<"$symbols" | sed 's/@.*/;/' | tr '\n' ' ')}$before;"
    before=" $version"
  done >"$target/mlx5.map"
  gcc -shared -fPIC -w -Wl,-soname,libmlx5.so.1 -Wl,--version-script="$target/mlx5.map" -o "$target/libmlx5.so.1" "$target/mlx5.c"
}

for version in 0.3.13 0.3.14; do
  stamp=$clients/$version/.installed-$recipe
  [ -e "$stamp" ] && continue
  echo "conformance: installing the released Mooncake $version" >&2
  debian_packages
  case $version in
  0.3.13) environment 0.3.13 mooncake-transfer-engine-non-cuda==0.3.13.post1 ;;
  0.3.14)
    # Without its dependencies: they would bring gigabytes of CUDA that TCP does not use.
    environment 0.3.14 --no-deps mooncake-transfer-engine-cuda13==0.3.14 'nvidia-cuda-runtime>=13,<14'
    "$clients/0.3.14/bin/python" -m pip -q --disable-pip-version-check install aiohttp requests msgpack
    driver_without_device "$(site_of 0.3.14)" "$clients/0.3.14/driver"
    ;;
  esac
  chmod +x "$(site_of $version)/mooncake/mooncake_master"
  touch "$stamp"
done
[ -e "$clients/0.3.14/mlx5/libmlx5.so.1" ] || mlx5_without_device "$(site_of 0.3.14)" "$clients/0.3.14/mlx5"
