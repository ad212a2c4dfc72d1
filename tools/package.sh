#!/bin/sh
# package.sh tarball|deb|rpm|wheel [ARCH]: a package of the portable program, which tools/portable.sh has built, in
# build/packages.
set -eu
cd "$(dirname "$0")/.."
kind=$1
native=$(dpkg --print-architecture)
arch=${2:-$native}
built=build/portable
[ "$arch" = "$native" ] || built=build/portable-$arch
version=$(sed -n 's/^project(stoker VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
summary=$(sed -n 's/^project(.* DESCRIPTION "\(.*\)")/\1/p' CMakeLists.txt)
machine=$(echo "$arch" | sed 's/amd64/x86_64/; s/arm64/aarch64/')
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH
mkdir -p build
exec 9>build/portable.lock # tools/portable.sh makes it anew
flock 9
[ -x "$built/root/usr/bin/stoker" ] || {
    echo "$built/root has no program: run 'make $kind', which builds it." >&2
    exit 1
}
out=$PWD/build/packages
work=$(mktemp -d "$PWD/$built/package.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"

need() { # need PROGRAM PACKAGE
    command -v "$1" >/dev/null || {
        echo "'make $kind' needs $1, which is missing: apt-get install $2" >&2
        exit 1
    }
}

tarball() {
    file=$out/stoker-$version-linux-$machine.tar.gz
    name=stoker-$version
    cp -a "$built/root/usr" "$work/$name"
    tar -c -C "$work" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
        --mode=u+rwX,go+rX,go-w "$name" | gzip -9n >"$file"
}

deb() {
    file=$out/stoker_${version}_$arch.deb
    cp -a "$built/root" "$work/root"
    doc=$work/root/usr/share/doc/stoker
    {
        echo "Stoker is licensed under the Apache License, Version 2.0: /usr/share/common-licenses/Apache-2.0"
        echo "The program holds libraries, whose copyrights and licences follow."
        cat "$doc/LICENSES"
    } >"$doc/copyright"
    rm "$doc/LICENSES" "$doc/LICENSE"
    maintainer=$(sed -n 's/^Maintainer: //p' packaging/control)
    printf 'stoker (%s) unstable; urgency=medium\n\n  * See the log of the repository.\n\n -- %s  %s\n' "$version" \
        "$maintainer" "$(date -Rud "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$doc/changelog.gz"
    gzip -9n "$work/root/usr/share/man/man1/stoker.1"
    mkdir -p "$work/root/usr/share/lintian/overrides" "$work/root/DEBIAN"
    cp packaging/lintian-overrides "$work/root/usr/share/lintian/overrides/stoker"
    chmod -R u+rwX,go+rX,go-w "$work/root"
    (cd "$work/root" && find usr -type f | LC_ALL=C sort | xargs -d '\n' md5sum) >"$work/root/DEBIAN/md5sums"
    sed "s/@VERSION@/$version/; s/@ARCH@/$arch/; s/@SIZE@/$(du -sk "$work/root/usr" | cut -f1)/" \
        packaging/control >"$work/root/DEBIAN/control"
    dpkg-deb --root-owner-group -Zxz --build "$work/root" "$file" >/dev/null
}

rpm() {
    need rpmbuild rpm
    file=$out/stoker-$version-1.$machine.rpm
    rpmbuild -bb --quiet --target "$machine-linux" --define "_topdir $work" --define "_rpmdir $work" \
        --define "staged $PWD/$built/root" --define "stoker_version $version" --define "stoker_summary $summary" \
        packaging/stoker.spec >"$work/log" 2>&1 || {
        cat "$work/log" >&2
        exit 1
    }
    mv "$work/$machine/$(basename "$file")" "$file"
}

wheel() {
    need python3 python3
    file=$out/stoker-$version-py3-none-manylinux_2_28_$machine.whl
    python3 tools/wheel.py "$built/root/usr" "$file" "$version" "$summary"
}

case $kind in
tarball | deb | rpm | wheel) "$kind" ;;
*)
    echo "package.sh: '$kind' is none of tarball, deb, rpm and wheel" >&2
    exit 2
    ;;
esac
echo "made $file ($(stat -c %s "$file") bytes)"
