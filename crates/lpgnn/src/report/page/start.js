"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
render(data);
if (data.live) follow(data);
