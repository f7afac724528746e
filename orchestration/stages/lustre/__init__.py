"""FSx for Lustre: a file system for the run, created and always deleted, or an existing one.

https://docs.aws.amazon.com/fsx/latest/LustreGuide/
"""

from orchestration.stages.lustre.asking import LustreLink
from orchestration.stages.lustre.existing import ExistingFileSystem
from orchestration.stages.lustre.new import NewFileSystem

__all__ = ["ExistingFileSystem", "LustreLink", "NewFileSystem"]
