// What a user of axios writes; it is type-checked, and never runs.

import axios from "axios";
import { inspect } from "@media-head/lifecycle";

export const { state } = inspect(await axios.head("https://example.com/v1/songs"));
