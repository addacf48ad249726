#include "snapshot/delta.h"
