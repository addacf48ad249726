#include "snapshot/parts.h"
