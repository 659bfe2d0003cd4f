"""Former path of `evenhand.audits.experiment_loggers`, importable for one release."""

import warnings

from evenhand.audits.experiment_loggers import LOGGERS, MlflowLogger, WandbLogger

__all__ = ["LOGGERS", "MlflowLogger", "WandbLogger"]
warnings.warn(
    "evenhand.api.tracking is now evenhand.audits.experiment_loggers", DeprecationWarning, stacklevel=2
)
