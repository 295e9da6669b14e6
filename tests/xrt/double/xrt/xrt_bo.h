// XRT's header of this name, by the test double.
#include "../double.h"
