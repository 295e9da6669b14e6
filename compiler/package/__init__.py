"""The package of a design: archive, manifest, host runtime and report."""

from penstock.compiler.package.archive import check_folder, write_archive, write_folder
from penstock.compiler.package.contents import Expected, PackageContents, collect_package, file_name
from penstock.compiler.package.report import Report

__all__ = [
    "Expected",
    "PackageContents",
    "Report",
    "check_folder",
    "collect_package",
    "file_name",
    "write_archive",
    "write_folder",
]
