"""The rule sets that tests compare with frameworks; rules that name no measured operations have none."""

from supremum import get_rules
from supremum.rules.names import HOMES

FRAMEWORK_RULES = [name for name in HOMES if get_rules(name).measured is not None]
