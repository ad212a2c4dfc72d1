# spack repo add packaging/spack && spack install stoker: builds the branch main of this repository with Spack's libraries.
import pathlib

from spack.package import *


class Stoker(CMakePackage):
    """Can your storage keep your accelerators fed, and how many?"""

    git = pathlib.Path(__file__).resolve().parents[4].as_uri()
    license("Apache-2.0")

    version("main", branch="main")

    variant("io_uring", default=True, description="The store io_uring")

    depends_on("c", type="build")
    depends_on("cmake@3.18:", type="build")
    depends_on("libyaml")
    depends_on("jansson")
    depends_on("zlib-api")
    depends_on("bzip2")
    depends_on("libdeflate")
    depends_on("jpeg")
    depends_on("liburing", when="+io_uring")

    def cmake_args(self):
        return [self.define_from_variant("STOKER_IO_URING", "io_uring"), self.define("BUILD_TESTING", False)]
