#include "proxy/wire/connless.h"
