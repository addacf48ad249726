#include "snapshot/objects.h"
